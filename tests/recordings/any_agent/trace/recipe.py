"""The weather scenario as in ../tinyagent, as the trace that any-agent itself gives back, dumped to JSON."""

import os
import runpy
from pathlib import Path

os.environ["AS_TRACE"] = "yes"
runpy.run_path(str(Path(__file__).parent.parent / "tinyagent" / "recipe.py"), run_name="__main__")
