"""Recordings as tests: ``@pytest.mark.spanreplay("runs/refund.json")``.

The test's own calls of models and tools are answered from that file, with the guard of a replay around them; any difference fails the test
and is printed as ``spanreplay replay`` does. The file lies beside the test and is made by ``pytest --spanreplay=record``. A test may write
to its ``tmp_path``, and to what ``@pytest.mark.spanreplay("runs/refund.json", allow_write=["out"])`` names.

Nothing is imported until a test asks for it.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import pytest

if TYPE_CHECKING:
    from spanreplay.replay import ReplayResult, Run
    from spanreplay.replay.reexecution.baseline import Baseline

Mode: TypeAlias = Literal["replay", "record", "refuse"]

_MARK: Final = "spanreplay"
_OPTION: Final = "--spanreplay"
_ALLOW_WRITE: Final = "allow_write"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--spanreplay``."""
    parser.getgroup("spanreplay").addoption(
        _OPTION,
        choices=["replay", "record", "refuse"],
        default="replay",
        help="replay (default): tests marked with a recording are answered from it. record: they run for real, and their recordings are "
        "written anew. refuse: as replay, and a test without a recording may call no model and no tool.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The mark."""
    config.addinivalue_line("markers", f"{_MARK}(path, allow_write=()): answer the test's calls from this recording")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a marked test inside its recording."""
    mode = cast("Mode", pyfuncitem.config.getoption(_OPTION))
    path = _recording_of(pyfuncitem)
    if path is None and mode != "refuse":
        return (yield)
    if path is not None and mode == "record":
        with _writing(path):
            return (yield)
    runs = [] if path is None else _read(path)
    with _replaying(runs, where=path, allow_write=_writable(pyfuncitem)):
        return (yield)


def _recording_of(item: pytest.Item) -> Path | None:
    mark = item.get_closest_marker(_MARK)
    if mark is None:
        return None
    if len(mark.args) != 1 or mark.kwargs.keys() - {_ALLOW_WRITE} or not isinstance(mark.args[0], str):
        raise pytest.UsageError(f'{item.nodeid}: the mark takes one path, as in @pytest.mark.spanreplay("runs/refund.json")')
    return item.path.parent / mark.args[0]


def _writable(item: pytest.Function) -> list[Path]:
    """The test's own temporary folder, and what its mark allows."""
    mark = item.get_closest_marker(_MARK)
    allowed = [Path(path) for path in mark.kwargs.get(_ALLOW_WRITE, ())] if mark is not None else []
    own = item.funcargs.get("tmp_path")
    return [*allowed, *([own] if isinstance(own, Path) else [])]


def _read(path: Path) -> "list[Run]":
    from spanreplay.replay.inputs.report import UnreadableSource
    from spanreplay.replay.reexecution import baseline

    if not path.exists():
        pytest.fail(f"there is no recording {path}; make it with: pytest {_OPTION}=record", pytrace=False)
    try:
        return baseline.read(path)
    except UnreadableSource as error:
        pytest.fail(f"the recording cannot be read: {error}", pytrace=False)


@contextmanager
def _writing(path: Path) -> "Iterator[Baseline]":
    from spanreplay.replay.reexecution import baseline

    try:
        with baseline.recorded() as made:
            yield made
        baseline.write(path, made.records, made.runs)
    except baseline.NothingRecorded as error:
        pytest.fail(str(error), pytrace=False)


@contextmanager
def _replaying(runs: "list[Run]", *, where: Path | None, allow_write: list[Path]) -> Iterator[None]:
    from spanreplay.replay.reexecution.engine import Replayer
    from spanreplay.replay.reports.verdict import render_verdict

    execution = Replayer(runs, allow_write=allow_write).execution(whole_process=True)
    with execution:
        yield
    result = execution.result()
    if result.error is not None and result.verdict.equal:
        raise result.error
    if not result.verdict.equal:
        what = f"against {where}" if where is not None else f"without a recording ({_OPTION}=refuse)"
        told = f"{what}\n{render_verdict(result.verdict, runs, colour=False)}"
        pytest.fail(told if result.error is None else f"{told}\nthe test then failed: {result.error!r}", pytrace=False)


@pytest.fixture
def replay_run(request: pytest.FixtureRequest) -> "Callable[..., ReplayResult]":
    """``replay_run("runs/refund.json", agent, *args)``: call a function with every call answered from a recording; gives the result.

    A coroutine function is run to its end.
    """
    from spanreplay.replay.reexecution.engine import Replayer

    folder = request.path.parent

    def replay(path: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> "ReplayResult":
        return Replayer(_read(folder / path)).replay(function, *args, **kwargs)

    return replay


@pytest.fixture
def record_run(request: pytest.FixtureRequest) -> "Callable[[str], AbstractContextManager[Baseline]]":
    """Records a block and writes its file.

    ``with record_run("runs/refund.json") as made:``; afterwards ``made.runs`` is what was recorded.
    """
    folder = request.path.parent
    return lambda path: _writing(folder / path)
