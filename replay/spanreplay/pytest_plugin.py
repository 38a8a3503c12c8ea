"""Recordings as tests: ``@pytest.mark.spanreplay("runs/refund.json")``.

The test's own calls of models and tools are answered from that file, with the guard of a replay around them; any difference fails the test
and is printed as ``spanreplay replay`` does. The file lies beside the test and is made by ``pytest --spanreplay=record``. A test may write
to its ``tmp_path``, and to what ``@pytest.mark.spanreplay("runs/refund.json", allow_write=["out"])`` names. What may differ is named by
``ignore=["messages[*].content", "/took [0-9]+ ms/"]``.

A recording is a decision about what is right: where a test behaves otherwise now, ``--spanreplay=record`` replaces it only with
``--spanreplay-reason "why"``, which is kept in the file.

Nothing is imported until a test asks for it.
"""

import shlex
from collections.abc import Callable, Generator, Iterator, Sequence
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
_REASON: Final = "--spanreplay-reason"
_ALLOW_WRITE: Final = "allow_write"
_IGNORE: Final = "ignore"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--spanreplay`` and ``--spanreplay-reason``."""
    group = parser.getgroup("spanreplay")
    group.addoption(
        _OPTION,
        choices=["replay", "record", "refuse"],
        default="replay",
        help="replay (default): tests marked with a recording are answered from it. record: they run for real, and their recordings are "
        "written where there are none, or their places in the code have moved; see --spanreplay-reason. refuse: as replay, and a test "
        "without a recording may call no model and no tool.",
    )
    group.addoption(
        _REASON,
        metavar="WHY",
        help="With --spanreplay=record: why recordings whose behaviour has changed are right now. Kept in each of them, with the digest of "
        "the one it replaces.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The mark."""
    config.addinivalue_line("markers", f"{_MARK}(path, allow_write=(), ignore=()): answer the test's calls from this recording")
    reason = config.getoption(_REASON)
    if reason is not None and _mode(config) != "record":
        raise pytest.UsageError(f"{_REASON} is for {_OPTION}=record")
    if reason is not None and not reason.strip():
        raise pytest.UsageError(f"{_REASON} is empty: say why what has changed is right now")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a marked test inside its recording."""
    mode = _mode(pyfuncitem.config)
    path = _recording_of(pyfuncitem)
    by_itself = {"replay_run", "record_run"} & set(pyfuncitem.fixturenames)
    if path is None and (mode != "refuse" or by_itself):
        return (yield)
    if path is not None and mode == "record":
        with _writing(path, pyfuncitem.config):
            return (yield)
    runs = [] if path is None else _read(path)
    _tell_behaviour(pyfuncitem, runs)
    with _replaying(runs, where=path, allow_write=_writable(pyfuncitem), ignore=_ignored(pyfuncitem)):
        return (yield)


def _tell_behaviour(item: pytest.Item, runs: "list[Run]") -> None:
    """Into the test's properties, which JUnit XML has: equal for runs that did the same."""
    if runs:
        from spanreplay.replay.rebuilding.behaviour import behaviour_hash

        item.user_properties += [("spanreplay.behaviour", behaviour_hash(run)) for run in runs if run.steps]


def _mode(config: pytest.Config) -> Mode:
    return cast("Mode", config.getoption(_OPTION))


def _recording_of(item: pytest.Item) -> Path | None:
    mark = item.get_closest_marker(_MARK)
    if mark is None:
        return None
    if len(mark.args) != 1 or mark.kwargs.keys() - {_ALLOW_WRITE, _IGNORE} or not isinstance(mark.args[0], str):
        pytest.fail('the mark takes one path, as in @pytest.mark.spanreplay("runs/refund.json")', pytrace=False)
    return item.path.parent / mark.args[0]


def _writable(item: pytest.Function) -> list[Path]:
    """The test's own temporary folder, and what its mark allows."""
    mark = item.get_closest_marker(_MARK)
    allowed = [Path(path) for path in mark.kwargs.get(_ALLOW_WRITE, ())] if mark is not None else []
    own = item.funcargs.get("tmp_path")
    return [*allowed, *([own] if isinstance(own, Path) else [])]


def _ignored(item: pytest.Function) -> list[str]:
    """What the mark of a test lets differ."""
    mark = item.get_closest_marker(_MARK)
    return list(mark.kwargs.get(_IGNORE, ())) if mark is not None else []


def _read(path: Path) -> "list[Run]":
    from spanreplay.replay.inputs.report import UnreadableSource
    from spanreplay.replay.reexecution import baseline

    if not path.exists():
        pytest.fail(f"there is no recording {path}; make it with: pytest {_OPTION}=record", pytrace=False)
    try:
        return baseline.read(path)
    except UnreadableSource as error:
        raise pytest.fail.Exception(f"the recording cannot be read: {error}", pytrace=False) from None


@contextmanager
def _writing(path: Path, config: pytest.Config) -> "Iterator[Baseline]":
    from spanreplay.replay.reexecution import baseline

    if _mode(config) == "refuse":
        pytest.fail(f"{path} is not recorded: {_OPTION}=refuse", pytrace=False)
    try:
        with baseline.recorded() as made:
            yield made
        _write(path, made, config)
    except baseline.NothingRecorded as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _write(path: Path, made: "Baseline", config: pytest.Config) -> None:
    from spanreplay.replay.inputs.report import UnreadableSource
    from spanreplay.replay.reexecution import baseline

    try:
        baseline.write(path, made.records, made.runs, reason=config.getoption(_REASON))
    except (baseline.BehaviourChanged, UnreadableSource) as error:
        told = (
            f"{path} stays as it is: what the test does is not what was recorded.\n{error}\n"
            f'If that is right now, say why: pytest {_OPTION}=record {_REASON} "…"'
        )
        raise pytest.fail.Exception(told, pytrace=False) from None


@contextmanager
def _replaying(runs: "list[Run]", *, where: Path | None, allow_write: list[Path], ignore: list[str]) -> Iterator[None]:
    from spanreplay.replay.reexecution.engine import Replayer
    from spanreplay.replay.reexecution.places import PatternError
    from spanreplay.replay.reports.verdict import render_verdict

    try:
        execution = Replayer(runs, allow_write=allow_write, ignore=ignore).execution(whole_process=True)
    except PatternError as error:
        pytest.fail(f"{_IGNORE}: {error}", pytrace=False)
    with execution:
        yield
    result = execution.result()
    if result.error is not None and result.verdict.equal:
        raise result.error
    if not result.verdict.equal:
        what = f"against {where}" if where is not None else f"without a recording ({_OPTION}=refuse)"
        told = f"{what}\n{render_verdict(result.verdict, runs, colour=False)}"
        pytest.fail(told if result.error is None else f"{told}\nthe test then failed: {result.error!r}", pytrace=False)


class ReplayRun:
    """The fixture :func:`replay_run`."""

    def __init__(self, folder: Path, config: pytest.Config) -> None:
        self._folder = folder
        self._config = config

    def __call__(
        self, path: str, what: Callable[..., Any] | Sequence[str], *args: Any, run: str | None = None, cwd: str = ".", **kwargs: Any
    ) -> "ReplayResult":
        """Execute ``what`` with every call answered from a recording.

        Args:
            path: the recording, from the folder of the test.
            what: a function, called with ``args`` and ``kwargs`` in this process (a coroutine function is run to its end); or a command,
                run in processes of its own, with the guard that the machine offers.
            args: for the function.
            run: id of the one run that is to come again, where the recording has several.
            cwd: where to run the command, from the folder of the test.
            kwargs: for the function.

        Returns:
            What it showed. Of a command, ``value`` is its exit code.
        """
        file = self._folder / path
        if callable(what):
            if _mode(self._config) == "record":
                self._record(file, what, args, kwargs)
            from spanreplay.replay.reexecution.engine import Replayer

            return Replayer(self._named(path, run)).replay(what, *args, **kwargs)
        folder = self._folder / cwd
        if _mode(self._config) == "record":
            self._record_command(file, what, folder)
        return _command(file, what, folder, run)

    def runs(self, path: str, *, run: str | None = None) -> "list[Run]":
        """The recorded runs of a file, for checks over their steps: nothing is executed.

        A recorded command all of whose calls are of agents is none of them.

        Args:
            path: the recording, from the folder of the test.
            run: the beginning of the id of the only one wanted.
        """
        found = self._named(path, run)
        return [one for one in found if one.steps or not one.is_command or len(found) == 1]

    def _named(self, path: str, run: str | None) -> "list[Run]":
        found = _read(self._folder / path)
        return [one for one in found if run is None or one.run_id.startswith(run)]

    def _record(self, file: Path, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        import asyncio
        import inspect

        with _writing(file, self._config):
            made = function(*args, **kwargs)
            if inspect.iscoroutine(made):
                asyncio.run(made)

    def _record_command(self, file: Path, argv: Sequence[str], cwd: Path) -> None:
        import subprocess
        import sys
        import tempfile

        from spanreplay.replay.reexecution import baseline

        with tempfile.TemporaryDirectory(prefix="spanreplay-") as folder:
            store = Path(folder) / "store"
            line = [sys.executable, "-m", "spanreplay", "record", "-q", "--store", str(store), "--", *argv]
            subprocess.run(line, cwd=cwd, check=False)  # noqa: S603 — the command of the test
            made = baseline.recorded_in(store)
        try:
            _write(file, made, self._config)
        except baseline.NothingRecorded as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None


def _command(file: Path, argv: Sequence[str], cwd: Path, run: str | None) -> "ReplayResult":
    from spanreplay.replay.inputs.source import open_source
    from spanreplay.replay.reexecution.command import CommandMissing, replay_command
    from spanreplay.replay.reexecution.engine import ReplayResult
    from spanreplay.replay.reexecution.ledger import EXIT_CANNOT_JUDGE
    from spanreplay.replay.reports.verdict import render_verdict

    runs = _read(file)
    focus = [] if run is None else [one.run_id for one in runs if one.run_id.startswith(run)]
    try:
        done = replay_command(runs, list(open_source(str(file)).records), argv, focus=focus, cwd=cwd)
    except CommandMissing as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    if done.verdict.exit_code == EXIT_CANNOT_JUDGE:
        pytest.fail(f"{shlex.join(argv)} cannot be judged:\n{render_verdict(done.verdict, done.runs, colour=False)}", pytrace=False)
    return ReplayResult(value=done.exit_code, error=None, verdict=done.verdict)


@pytest.fixture
def replay_run(request: pytest.FixtureRequest) -> ReplayRun:
    """``replay_run("runs/refund.json", agent, *args)``: call a function, or run a command, with every call answered from a recording.

    It gives the result; ``replay_run.runs("runs/refund.json")`` gives the recorded runs. See :class:`ReplayRun`.
    """
    return ReplayRun(request.path.parent, request.config)


@pytest.fixture
def record_run(request: pytest.FixtureRequest) -> "Callable[[str], AbstractContextManager[Baseline]]":
    """Records a block and writes its file.

    ``with record_run("runs/refund.json") as made:``; afterwards ``made.runs`` is what was recorded.
    """
    folder = request.path.parent
    return lambda path: _writing(folder / path, request.config)
