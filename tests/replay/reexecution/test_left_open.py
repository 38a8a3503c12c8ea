"""Calls that are open when a process ends by itself: a stream that nobody closed, and a daemon thread in the middle of one."""

import json
import sys
import threading
from pathlib import Path
from typing import Any

from spanreplay.boundary.call import Answer
from support import nursery
from support.model_server import ModelServer, Scripted

AGENT = """
import sys, threading
import httpx

started = threading.Event()
client = httpx.Client(timeout=30, trust_env=False)
opened = client.stream("GET", sys.argv[1] + "/stream")
lines = opened.__enter__().iter_lines()
for _ in range(int(open("lines").read())):
    print(next(lines))
waiting = httpx.Client(timeout=30, trust_env=False, event_hooks={"request": [lambda _: started.set()]})
threading.Thread(target=waiting.get, args=(sys.argv[1] + "/slow",), daemon=True).start()
started.wait()
"""


def test_what_was_open_at_the_end_is_left_open_again_and_the_rest_is_judged(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    never = threading.Event()
    with ModelServer() as server:
        server.script(Scripted(parts=(b"one\n", b"two\n", never, b"three\n"), chunked=True), Scripted(before=never))
        agent = (sys.executable, "agent.py", server.url)
        (tmp_path / "lines").write_text("1")
        recorded = nursery.spanreplay("record", "--", *agent, folder=tmp_path)
        assert (recorded.returncode, recorded.stdout, "cut short" in recorded.stderr) == (0, "one\n", False), recorded.stderr
        asked = len(server.requests)

        def replay(*words: str) -> dict[str, Any]:
            done = nursery.spanreplay("replay", "last", "--json", *words, "--", *agent, folder=tmp_path)
            told: dict[str, Any] = json.loads(done.stdout)
            assert done.returncode == told["replay"]["exit_code"], done.stderr
            assert "Traceback" not in done.stderr
            return told

        again = replay()
        assert (again["replay"]["exit_code"], again["replay"]["cut_short"]) == (0, []), again
        assert [step["outcome"] for step in again["runs"][0]["steps"]] in (["abandoned"], ["abandoned", "abandoned"])
        (tmp_path / "lines").write_text("3")
        more = replay()["replay"]
        assert (more["exit_code"], [one["kind"] for one in more["differences"]]) == (1, ["beyond"]), more
        assert len(server.requests) == asked
        never.set()


def test_an_answer_that_has_anything_has_come() -> None:
    assert Answer(outcome="abandoned").never_came
    assert not Answer(outcome="ok").never_came
    assert not Answer(outcome="abandoned", items="[]").never_came
    assert not Answer(outcome="abandoned", result="null").never_came
