"""The weather scenario as in ../v5, with version 2 of the instrumentation; the provider refuses the second request, which ends the run."""

import os
import runpy
from pathlib import Path

os.environ["INSTRUMENTATION_VERSION"] = "2"
try:
    runpy.run_path(str(Path(__file__).parent.parent / "v5" / "recipe.py"), run_name="__main__")
except Exception as error:
    print(f"ended: {error}")
