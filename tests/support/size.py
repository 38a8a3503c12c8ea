"""How large the heavy checks are: one variable, ``SPANREPLAY_TEST_SIZE``, is ``small`` or ``full``."""

import os
from typing import Any, Final

FULL: Final = os.environ.get("SPANREPLAY_TEST_SIZE", "small") == "full"
"""The sizes that are claimed; what ``make full`` runs."""


def first_of(*values: str) -> list[Any]:
    """Cases of one test: the first always, the others at full size."""
    import pytest  # the benches run where there is none

    skip = pytest.mark.skipif(not FULL, reason="runs at SPANREPLAY_TEST_SIZE=full")
    return [pytest.param(value, marks=() if place == 0 else skip) for place, value in enumerate(values)]
