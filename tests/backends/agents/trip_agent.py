"""The agent of ``spanreplay demo``, once, as a program of its own: ``trip_agent.py OUTBOX``."""

import asyncio
import json
import sys
from pathlib import Path

from spanreplay.cli.demo_agent import TripAgent

print(json.dumps({"final": asyncio.run(TripAgent(Path(sys.argv[1])).run())}))
