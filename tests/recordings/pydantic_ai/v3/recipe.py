"""The weather scenario as in ../v5, with version 3 of the instrumentation."""

import os
import runpy
from pathlib import Path

os.environ["INSTRUMENTATION_VERSION"] = "3"
runpy.run_path(str(Path(__file__).parent.parent / "v5" / "recipe.py"), run_name="__main__")
