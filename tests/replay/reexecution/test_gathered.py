"""Tasks that make the same calls: where one of them makes a call less, more or otherwise, each of the others gets its own results."""

import asyncio
from collections import defaultdict
from itertools import count

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spanreplay.instrumentation import tool
from spanreplay.replay.reexecution.forks import scope_of
from spanreplay.replay.reexecution.gathered import gathered
from support.handmade import step
from support.size import FULL
from support.taped import recorded, replayed

ASKED = ("same", "same", "last")
_numbers = count()


@tool(effect="read")
async def look(q: str, naps: int) -> int:
    for _ in range(naps % 3):
        await asyncio.sleep(0)
    return next(_numbers)


class Program:
    """Tasks that all ask the same, but for one of them; what each was given is kept, also where the replay is stopped."""

    def __init__(self, calls: list[list[str]], naps: list[int]) -> None:
        self.calls, self.naps = calls, naps
        self.given: dict[int, list[int]] = defaultdict(list)

    async def one(self, task: int) -> None:
        for _ in range(self.naps[task]):
            await asyncio.sleep(0)
        for asked in self.calls[task]:
            self.given[task].append(await look(asked, 0))

    async def run(self) -> None:
        await asyncio.gather(*(self.one(task) for task in range(len(self.calls))))

    def __call__(self) -> None:
        asyncio.run(self.run())


@settings(max_examples=100 if FULL else 5, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    tasks=st.integers(2, 6),
    odd=st.integers(0, 5),
    place=st.integers(0, 2),
    what=st.sampled_from(["missing", "extra", "changed"]),
    naps=st.lists(st.integers(0, 4), min_size=12, max_size=12),
)
def test_one_call_that_is_missing_extra_or_changed_takes_nobody_elses_result(
    tasks: int, odd: int, place: int, what: str, naps: list[int]
) -> None:
    odd %= tasks
    before = Program([list(ASKED)] * tasks, naps[:6])
    tape = recorded(before)
    calls = [list(ASKED) for _ in range(tasks)]
    if what == "missing":
        del calls[odd][place]
    elif what == "extra":
        calls[odd].insert(place, calls[odd][place])
    else:
        calls[odd][place] = "other"
    now = Program(calls, naps[6:])
    result = replayed(tape, now)
    assert not result.equal
    assert result.verdict.matched_by_chance == 0
    for task, results in now.given.items():
        own = before.given[task]
        if task != odd:
            assert results == own[: len(results)]
        else:
            assert set(results) <= set(own)
    if what == "missing":
        assert {task: now.given[task] for task in range(tasks) if task != odd} == {t: before.given[t] for t in range(tasks) if t != odd}
        (difference,) = (d for d in result.differences if d.kind != "output")
        missed = next(s for run in tape.runs() for s in run.steps if s.seq == difference.step)
        assert difference.kind == "unreached"
        assert isinstance(missed.output, dict)
        assert missed.output["result"] in before.given[odd]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ((("~w#0", "ab"), ("~w#1", "ab")), {"~w#0", "~w#1"}),
        ((("~w#0", "ab"), ("~w#1", "ba")), set()),
        ((("~w#0", "ab"), ("~w#1", "a")), set()),
        ((("~w#0", "aa"), ("~w#1", "aa")), set()),  # nothing tells how often each has to
        ((("~w#0", "ab"),), set()),
        ((("", "ab"), ("~w#0", "ab"), ("~v#0", "ab")), set()),
        ((("~w#0", "ab"), ("~w#1", "ab"), ("~v#0", "c"), ("~v#1", "d")), {"~w#0", "~w#1"}),
    ],
)
def test_which_tasks_make_the_same_calls(made: tuple[tuple[str, str], ...], expected: set[str]) -> None:
    scopes = defaultdict(list)
    for scope, asked in made:
        for number, text in enumerate(asked):
            path = f"{scope}/tool_call:t#{number}".lstrip("/")
            scopes[scope_of(path)].append(step(1, path, text))
    assert gathered(scopes, lambda s: s.typed_input) == expected
