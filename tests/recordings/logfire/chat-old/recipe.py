"""The weather scenario as in ../chat, with a Logfire that records bodies of its own shape."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parent.parent / "chat" / "recipe.py"), run_name="__main__")
