"""The weather scenario as in ../events, with the present conventions, content in attributes only."""

import os
import runpy
from pathlib import Path

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental,gen_ai_span_attributes_only,gen_ai_tool_definitions"
runpy.run_path(str(Path(__file__).parent.parent / "events" / "recipe.py"), run_name="__main__")
