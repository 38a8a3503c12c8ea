"""The weather scenario as in ../events, with an early Strands Agents, whose spans have names and attributes of their own."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parent.parent / "events" / "recipe.py"), run_name="__main__")
