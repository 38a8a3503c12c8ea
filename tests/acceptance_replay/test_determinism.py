"""What differs in every execution is the same in a replay."""

import json
import sys
from pathlib import Path

from acceptance.commands import Desk
from support.size import FULL

AGENT = [sys.executable, str(Path(__file__).parent / "dated.py")]


def test_the_day_uuids_secrets_chance_and_the_order_of_sets_on_another_day(tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path)
    assert desk.spanreplay("record", "--seed-secrets", command=["env", "RECORD_AT=2021-03-04 10:00", *AGENT]).code == 0
    done = desk.replay(AGENT, "--json")
    replay = json.loads(done.out)["replay"]
    assert (done.code, replay["differences"], replay["steps"]["matched"]) == (0, [], 3), str(done)
    (run,) = json.loads(done.out)["runs"]
    asked = [step["input"]["arguments"] for step in run["steps"]]
    assert [one["prompt"] for one in asked] == ["Today is 2021-03-04."] * 3
    assert len({one["key"] for one in asked}) == len({one["secret"] for one in asked}) == 3
    shuffled = desk.replay(AGENT, "--check-determinism", "2" if FULL else "1")
    assert (shuffled.code, shuffled.out.endswith("shuffled replays equal\n")) == (0, True), str(shuffled)


CHANCE = """
import asyncio
import secrets

from spanreplay.instrumentation import agent_run, tool


@tool(effect="read")
def ask(what):
    return what


async def main():
    order = []

    async def one(n):
        await asyncio.sleep(0.01)
        order.append(n)

    await asyncio.gather(*map(one, range(8)))
    ask(order)
    ask("always the same")
    ask(secrets.token_hex(4))


with agent_run("chance"):
    asyncio.run(main())
"""


def test_what_is_left_to_chance_is_named_with_its_line(tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path)
    file = desk.work / "chance.py"
    file.write_text(CHANCE)
    assert desk.record([sys.executable, str(file)]).code == 0
    done = desk.replay([sys.executable, str(file)], "--check-determinism", "2", "--json")
    found = json.loads(done.out)
    assert (done.code, found["equal"], found["changed"]) == (1, 0, []), str(done)
    assert [(one["where"], one["step"], one["replays"]) for one in found["by_chance"]] == [(f"{file}:21", 1, 2), (f"{file}:23", 3, 2)]
