"""The verdict of a re-execution as text: how to let through what was refused."""

from typing import Any

import pytest

from spanreplay.replay.reexecution.verdict import Verdict
from spanreplay.replay.reports.verdict import render_verdict


def verdict(**fields: Any) -> Verdict:
    given: dict[str, Any] = {
        "differences": (), "refusals": (), "notices": (), "recorded": 1, "matched": 1, "matched_by_input": 0, "covered": 0,
        "order_relaxed": 0, "telemetry_dropped": 0, "processes": 1, "isolation": "level 1", **fields,
    }  # fmt: skip
    return Verdict(**given)


@pytest.mark.parametrize(
    ("action", "target", "options"),
    [
        ("write", "/o/a.txt", "--allow-write /o/a.txt"),
        ("delete", "/o/a to b", "--allow-write '/o/a to b'"),
        ("rename", "/o/a to /o/b", "--allow-write /o/a --allow-write /o/b"),
        ("rename", "/o/a to b to /o/c", None),
        ("link", "/o/b for /o/a", "--allow-write /o/b --allow-write /o/a"),
        ("link", "/o/b", "--allow-write /o/b"),
        ("connect", "example.com:443", None),
    ],
)
def test_the_hint_of_a_refusal_names_every_path_or_none(action: str, target: str, options: str | None) -> None:
    refusal = {"action": action, "target": target, "text": "…"}
    lines = render_verdict(verdict(refusals=(refusal,)), [], colour=False).splitlines()
    hints = [line for line in lines if "--allow-write" in line]
    assert hints == ([f"  to let the agent write it: {options}"] if options else [])
