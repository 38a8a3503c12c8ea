"""How large the heavy checks are: one variable, ``SPANREPLAY_TEST_SIZE``, is ``small`` or ``full``."""

import os
from typing import Final

FULL: Final = os.environ.get("SPANREPLAY_TEST_SIZE", "small") == "full"
"""The sizes that are claimed; what ``make full`` runs."""
