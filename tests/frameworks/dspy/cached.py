"""DSPy's cache, on as it is by default: a model that is asked, an answer from memory, one from the disk."""

import json
import os
import sys
import tempfile

os.environ["DSPY_CACHEDIR"] = tempfile.mkdtemp()
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import dspy
from agent import model


def run(mode: str) -> str:
    lm = model(mode).copy(cache=True)
    told = []
    with dspy.context(lm=lm, track_usage=True):
        for number in range(3):
            if number == 2:
                dspy.cache.reset_memory_cache()
            done = dspy.Predict("question -> answer")(question=f"How warm is it, {mode}?")
            told.append(f"{done.answer} {bool(done.get_lm_usage())}")
    return str(told)


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": run(mode)}), flush=True)
