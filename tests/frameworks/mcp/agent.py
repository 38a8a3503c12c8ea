"""The MCP client: a loop over the OpenAI SDK whose tools are those of a server in a process of its own, and of one in memory."""

import asyncio
import json
import sys

from tools import MODES, main

for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(main(MODES[mode]))}), flush=True)
