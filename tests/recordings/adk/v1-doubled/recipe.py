"""The weather scenario as in ../v2 with the first schema, and google-genai's own instrumentation inside ADK's."""

import os
import runpy
from pathlib import Path

from opentelemetry.instrumentation.google_genai import GoogleGenAiSdkInstrumentor

os.environ["ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN"] = "1"
os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
GoogleGenAiSdkInstrumentor().instrument()
runpy.run_path(str(Path(__file__).parent.parent / "v2" / "recipe.py"), run_name="__main__")
