"""What differs in every execution is the same in a replay."""

import json
import sys
from pathlib import Path

from acceptance.commands import Desk

AGENT = [sys.executable, str(Path(__file__).parent / "dated.py")]


def test_the_day_uuids_chance_and_the_order_of_sets(tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path)
    assert desk.record(["env", "RECORD_AT=2021-03-04 10:00", *AGENT]).code == 0
    done = desk.replay(AGENT, "--json")
    replay = json.loads(done.out)["replay"]
    assert (done.code, replay["differences"], replay["steps"]["matched"]) == (0, [], 3), str(done)
    (run,) = json.loads(done.out)["runs"]
    assert [step["input"]["arguments"]["prompt"] for step in run["steps"]] == ["Today is 2021-03-04."] * 3
    assert len({step["input"]["arguments"]["key"] for step in run["steps"]}) == 3


TOKENS = """
import secrets
from secrets import token_hex

from spanreplay.instrumentation import agent_run, tool


@tool(effect="read")
def ask(a, b, c, d):
    secrets.token_bytes(3)


with agent_run("tokens"):
    for _ in range(2):
        ask(token_hex(9), secrets.token_urlsafe(7), secrets.randbelow(10**9), secrets.choice(range(10**9)))
"""
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


def test_a_shuffled_replay_on_another_day_is_equal(tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path)
    assert desk.record(["env", "RECORD_AT=2021-03-04 10:00", *AGENT]).code == 0
    done = desk.replay(AGENT, "--check-determinism", "2")
    assert (done.code, done.out) == (0, "2 of 2 shuffled replays equal\n"), str(done)


def test_secrets_are_made_again_where_that_was_asked_for(tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path)
    file = desk.work / "tokens.py"
    file.write_text(TOKENS)
    assert desk.spanreplay("record", "--seed-secrets", command=[sys.executable, str(file)]).code == 0
    done = desk.replay([sys.executable, str(file)], "--json")
    replay = json.loads(done.out)["replay"]
    assert (done.code, replay["differences"], replay["steps"]["matched"]) == (0, [], 2), str(done)
    (run,) = json.loads(done.out)["runs"]
    first, second = (step["input"]["arguments"] for step in run["steps"])
    assert all(first[name] != second[name] for name in first), "as different as secrets are"


def test_what_is_left_to_chance_is_named_with_its_line(tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path)
    file = desk.work / "chance.py"
    file.write_text(CHANCE)
    assert desk.record([sys.executable, str(file)]).code == 0
    done = desk.replay([sys.executable, str(file)], "--check-determinism", "2", "--json")
    found = json.loads(done.out)
    assert (done.code, found["equal"], found["changed"]) == (1, 0, []), str(done)
    assert [(one["where"], one["step"], one["replays"]) for one in found["by_chance"]] == [(f"{file}:21", 1, 2), (f"{file}:23", 3, 2)]
