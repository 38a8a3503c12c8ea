"""The weather scenario as in ../otel, with the first versions of the exporter, which write inputs and outputs as bytes."""

import os
import runpy
from pathlib import Path

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
os.environ.update(LANGSMITH_OTEL_ENABLED="true", LANGSMITH_OTEL_ONLY="true")
runpy.run_path(str(Path(__file__).parent.parent / "otel" / "recipe.py"), run_name="__main__")
provider.shutdown()
