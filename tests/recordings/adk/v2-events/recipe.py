"""The weather scenario as in ../v2, with content in log records."""

import os
import runpy
from pathlib import Path

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "EVENT_ONLY"
runpy.run_path(str(Path(__file__).parent.parent / "v2" / "recipe.py"), run_name="__main__")
