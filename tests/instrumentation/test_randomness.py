"""uuids and random numbers that a replay makes again, and that no two callers share."""

import asyncio
import hashlib
import os
import random
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from spanreplay.boundary.scope import current_scope, process
from spanreplay.instrumentation import agent_run, scope, tool
from spanreplay.instrumentation.shims import randomness
from support.taped import recorded


@pytest.fixture(autouse=True)
def _taken_out_again() -> Iterator[None]:
    state = random.getstate()
    yield
    randomness.uninstall()
    random.setstate(state)


def made(function: Callable[[], Any], seed: str = "s") -> Any:
    """What a function gives while it is recorded with this seed."""
    given: list[Any] = []
    randomness.install(seed, fresh=True)
    try:
        recorded(lambda: given.append(asyncio.run(function()) if asyncio.iscoroutinefunction(function) else function()))
    finally:
        randomness.uninstall()
    return given[0]


def several() -> list[uuid.UUID]:
    found: list[uuid.UUID] = []

    def one(_: int) -> None:
        found.append(uuid.uuid4())

    for name in ("first", "second", "first"):
        with agent_run(name):
            found.extend((uuid.uuid4(), uuid.uuid1()))
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(one, range(5)))
    return [uuid.uuid4(), *found]


def test_the_same_seed_gives_the_same_uuids_and_no_caller_shares_one() -> None:
    first = made(several)
    assert sorted(made(several)) == sorted(first)
    assert len(set(first)) == len(first) == 22
    assert {(one.version, one.variant) for one in first} == {(4, uuid.RFC_4122), (1, uuid.RFC_4122)}
    assert not set(made(several, "t")) & set(first)


def test_what_a_seed_gives_is_the_same_in_every_version() -> None:
    def agent() -> tuple[str, list[uuid.UUID]]:
        here = current_scope()
        assert here is not None
        assert here.run is not None
        return f"4-s|{here.run.path}|{here.path}|uuid4@{__name__}", [uuid.uuid4(), uuid.uuid4()]

    place, drawn = made(agent, "4-s")
    wanted = [hashlib.sha256(f"{place}|{number}".encode()).digest()[:16] for number in range(2)]
    assert drawn == [uuid.UUID(bytes=each, version=4) for each in wanted]


def test_tasks_get_the_same_uuids_however_they_are_scheduled() -> None:
    def in_order(order: list[int]) -> Callable[[], Any]:
        async def run() -> dict[int, uuid.UUID]:
            found: dict[int, uuid.UUID] = {}
            turns = {number: asyncio.Event() for number in range(4)}

            async def task(number: int) -> None:
                await turns[number].wait()
                found[number] = uuid.uuid4()

            tasks = [asyncio.create_task(task(number)) for number in range(4)]
            for number in order:
                turns[number].set()
                await tasks[number]
            return found

        return run

    assert made(in_order([0, 1, 2, 3])) == made(in_order([3, 1, 0, 2]))


def test_what_a_tools_body_draws_changes_nothing_outside() -> None:
    def agent(body: Callable[[], Any]) -> Callable[[], list[Any]]:
        look = tool(name="look")(lambda: str(body()))

        def run() -> list[Any]:
            before = [random.random(), random.choice("abc")]
            look()
            return [*before, random.randint(0, 10**9), uuid.uuid4()]

        return run

    quiet = made(agent(lambda: None))
    assert made(agent(lambda: [random.random(), random.sample(range(9), 3), uuid.uuid4()])) == quiet


def library(name: str, code: str) -> Any:
    """A function of a module of this name."""
    known: dict[str, Any] = {"__name__": name, "uuid": uuid, "random": random}
    exec(f"def ask():\n    return {code}", known)
    return known["ask"]


def test_what_a_model_sdk_draws_or_not_changes_nothing_outside() -> None:
    key = library("openai._base_client", "uuid.uuid4()")
    jitter = library("httpx._transports.default", "random.random()")

    def agent(times: int) -> Callable[[], list[Any]]:
        def run() -> list[Any]:
            found = []
            for _ in range(3):
                found += [uuid.uuid4(), random.random()]
                for _ in range(times):
                    key(), jitter()
            return found

        return run

    quiet = made(agent(0), "2-s")
    assert made(agent(2), "2-s") == quiet
    keys = made(lambda: [key(), key()], "2-s")
    assert keys == made(lambda: [key(), uuid.uuid4(), key()][::2], "2-s")
    assert not set(keys) & set(quiet)


def test_each_module_has_uuids_of_its_own_and_the_program_those_of_its_name() -> None:
    asked = [library(name, "uuid.uuid4()") for name in ("one", "two", "one")]
    first, other, again = made(lambda: [ask() for ask in asked], "2-s")
    assert made(lambda: [asked[1](), asked[0](), asked[0]()], "2-s") == [other, first, again]
    as_program = library("__main__", "uuid.uuid4()")
    stem = library("<string>", "uuid.uuid4()")  # whose file is called so
    assert made(lambda: as_program(), "2-s") == made(lambda: stem(), "2-s")


def test_where_all_draws_were_one_sequence_a_key_that_an_sdk_is_not_asked_for_is_passed() -> None:
    key = library("openai._base_client", "uuid.uuid4()")

    def passed() -> list[uuid.UUID]:
        scope = current_scope()
        assert scope is not None
        found = [uuid.uuid4()]
        randomness.left_out(scope)
        return [*found, uuid.uuid4()]

    def asked() -> list[uuid.UUID]:
        return [uuid.uuid4(), key(), uuid.uuid4()][::2]

    for seed in ("0123456789abcdef", "2-0123456789abcdef"):
        assert made(passed, seed) == made(asked, seed)


def test_blocks_that_overlap_end_with_the_last_and_leave_random_as_it_was() -> None:
    before, original = random.getstate(), uuid.uuid4
    first, second = randomness.seeded("2-s", fresh=True), randomness.seeded("2-s", fresh=True)
    first.__enter__()
    drawn = random.random()
    second.__enter__()
    first.__exit__(None, None, None)
    assert uuid.uuid4 is not original
    second.__exit__(None, None, None)
    assert uuid.uuid4 is original
    assert random.getstate() == before
    with randomness.seeded("2-s", fresh=True):
        assert random.random() == drawn


def test_what_the_program_seeds_is_its_own() -> None:
    wanted = random.Random(42)
    numbers = [wanted.random(), wanted.random()]

    def agent() -> list[float]:
        random.seed(42)
        return [random.random(), tool(name="look")(random.random)()]

    assert made(agent) == numbers


def test_a_program_that_was_there_before_keeps_its_random_state() -> None:
    random.seed(7)
    wanted = random.Random(7).random()
    randomness.install("s", fresh=False)
    assert random.random() == wanted


def test_off_and_outside_a_recording_the_system_decides() -> None:
    original = uuid.uuid4
    randomness.install("s", fresh=False)
    assert process.active is False or process.root is None
    assert uuid.uuid4() != uuid.uuid4()
    assert uuid.uuid1(clock_seq=1).clock_seq == 1
    randomness.uninstall()
    assert uuid.uuid4 is original


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_shares_no_uuid_with_its_parent() -> None:
    def agent() -> tuple[uuid.UUID, uuid.UUID]:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, uuid.uuid4().bytes)
            os._exit(0)
        os.waitpid(child, 0)
        mine = uuid.uuid4()
        theirs = uuid.UUID(bytes=os.read(read, 16))
        os.close(read)
        os.close(write)
        return mine, theirs

    mine, theirs = made(agent)
    assert mine != theirs
    assert made(agent)[0] == mine


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_draws_what_belongs_to_its_place() -> None:
    def forked() -> bytes:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, f"{random.random()} {uuid.uuid4()}".encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        with open(read, "rb") as told:
            return told.read()

    def agent() -> list[bytes]:
        random.seed(4)  # what Python itself forgets at a fork
        return [forked(), forked(), f"{random.random()}".encode()]

    first = made(agent, "3-s")
    assert made(agent, "3-s") == first
    assert len(set(first)) == 3
    assert made(agent, "3-t")[:2] != first[:2]


def test_a_job_of_a_pool_of_processes_draws_the_same_whichever_worker_does_it() -> None:
    def job(path: str) -> float:
        randomness.begin_job("run", path)
        return random.random()

    first = made(lambda: [job("a"), job("b")], "3-s")
    assert made(lambda: [job("b"), job("a")], "3-s") == first[::-1]
    assert len(set(first)) == 2

    def seeds_itself() -> list[float]:
        random.seed(7)
        return [job("a"), job("b")]

    assert made(seeds_itself, "3-s") == [random.Random(7).random(), *made(seeds_itself, "3-u")[1:]]


def in_turns(order: list[int], act: Callable[[int], Any]) -> Callable[[], Any]:
    """Tasks and jobs of threads that draw twice each, in this order; then the run that they are in."""

    async def run() -> list[Any]:
        found: dict[int, list[Any]] = {number: [] for number in range(4)}

        async def task(number: int, turn: asyncio.Event) -> None:
            for _ in range(2):
                await turn.wait()
                turn.clear()
                found[number].append(act(number))
                if number % 2:
                    found[number].append(await asyncio.to_thread(act, number))

        turns = [asyncio.Event() for _ in found]
        tasks = [asyncio.create_task(task(number, turn)) for number, turn in enumerate(turns)]
        for _ in range(2):
            for number in order:
                seen = len(found[number])
                turns[number].set()
                while len(found[number]) < seen + 1 + number % 2:
                    await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        return [found, random.random()]

    return run


def test_each_task_and_thread_draws_from_random_what_is_its_own() -> None:
    def draw(number: int) -> list[float]:
        if number == 2:
            with agent_run("inside"):
                return [random.random(), random.gauss()]
        return [random.random(), random.gauss()]

    first = made(in_turns([0, 1, 2, 3], draw), "4-s")
    assert made(in_turns([3, 1, 0, 2], draw), "4-s") == first
    assert len({pair[0] for pairs in first[0].values() for pair in pairs}) == 12
    assert made(in_turns([0, 1, 2, 3], draw), "4-t")[0] != first[0]


def test_from_an_older_seed_and_from_one_of_the_program_all_draw_from_the_same() -> None:
    def flat(drawn: Any) -> list[float]:
        return [*(number for numbers in drawn[0].values() for number in numbers), drawn[1]]

    def seeding(order: list[int]) -> Callable[[], Any]:
        def run() -> Any:
            random.seed(42)
            return asyncio.run(in_turns(order, lambda _: random.random())())

        return run

    older = [flat(made(in_turns(order, lambda _: random.random()), "3-s")) for order in ([0, 1, 2, 3], [3, 1, 0, 2])]
    ours = [flat(made(seeding(order), "4-s")) for order in ([0, 1, 2, 3], [3, 1, 0, 2])]
    of_older, of_ours = random.Random("spanreplay 3-s"), random.Random(42)
    assert [sorted(one) for one in older] == [sorted(of_older.random() for _ in range(13))] * 2
    assert [sorted(one) for one in ours] == [sorted(of_ours.random() for _ in range(13))] * 2


def test_what_a_task_has_kept_of_the_state_it_can_draw_again() -> None:
    async def agent() -> list[float]:
        random.random()
        state = random.getstate()
        before = [random.random(), random.random()]
        random.setstate(state)
        return [*before, random.random(), random.random()]

    first, second, *again = made(agent, "4-s")
    assert again == [first, second]


def test_the_main_flow_draws_on_whatever_tasks_do_and_a_named_scope_has_its_own() -> None:
    def agent(jobs: int) -> Callable[[], list[float]]:
        def run() -> list[float]:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda _: random.random(), range(jobs)))
            with scope("item"):
                mine = random.random()
            return [random.random(), mine]

        return run

    drawn = made(agent(3), "4-s")
    assert made(agent(0), "4-s") == drawn
    assert drawn[0] == random.Random("spanreplay 4-s").random() != drawn[1]
