"""The weather scenario as in ../v2, with an ADK that has the first schema only."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parent.parent / "v2" / "recipe.py"), run_name="__main__")
