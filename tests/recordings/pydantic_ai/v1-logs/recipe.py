"""The weather scenario as in ../v1, with messages in log records."""

import os
import runpy
from pathlib import Path

os.environ["EVENT_MODE"] = "logs"
runpy.run_path(str(Path(__file__).parent.parent / "v1" / "recipe.py"), run_name="__main__")
