"""One process of a command that has several: an agent run, or calls outside of one, that ask for what the command line says."""

import os
import sys

from spanreplay.instrumentation import agent_run, tool


@tool(effect="read")
def answer(question: str) -> str:
    """Answer it."""
    return f"{question}!"


def main() -> None:
    """Run it."""
    how, question = sys.argv[1:3]
    if how == "bare":
        print(answer(question), answer("same"))
        return
    with agent_run("asker", input=question if how == "told" else None) as run:
        run.output = answer(question)
        if how == "gone":
            os._exit(0)
        if how == "acts":
            with open("acted", "w"):
                answer("never asked")
    if how == "gone-after":
        os._exit(0)
    print(run.output)


if __name__ == "__main__":
    main()
