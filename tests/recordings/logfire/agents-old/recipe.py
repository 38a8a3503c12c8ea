"""The scenario of ../agents with older versions, over the Chat Completions API."""

import os
import runpy
from pathlib import Path

os.environ["API"] = "chat_completions"
runpy.run_path(str(Path(__file__).parent.parent / "agents" / "recipe.py"), run_name="__main__")
