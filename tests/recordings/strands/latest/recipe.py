"""The weather scenario as in ../events, with the present conventions."""

import os
import runpy
from pathlib import Path

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
runpy.run_path(str(Path(__file__).parent.parent / "events" / "recipe.py"), run_name="__main__")
