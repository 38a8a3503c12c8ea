"""Several agents in one process, one run each: ``many_agents.py ROOT_URL chat/rivers/plain/chat-chain …`` (API, task, loop, recording)."""

import sys
from collections.abc import Mapping
from typing import Final

from acceptance.agents import chat_agent, messages_agent, responses_agent
from acceptance.agents.toolbox import Loop, run

APIS: Final[Mapping[str, Mapping[str, Loop]]] = {
    "chat": chat_agent.LOOPS,
    "responses": responses_agent.LOOPS,
    "messages": messages_agent.LOOPS,
}

if __name__ == "__main__":
    root, *wanted = sys.argv[1:]
    for each in wanted:
        api, task, mode, recording = each.split("/")
        print(run(APIS[api][mode], f"{root}/{recording}.{mode}", task))
