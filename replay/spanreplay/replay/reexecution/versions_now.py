"""The recorded versions against those of a replay: code, dependencies, Python, machine, image, variables and the command itself.

The processes of a replayed command know their own: the first of them compares, tells, and enters the result in its ledger. What asks git is
found out by the program that starts the command, and handed to it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from spanreplay.content.redaction import PolicyError, RedactionPolicy, Redactor
from spanreplay.exporter.redacting import redactor_for
from spanreplay.recording.definition import HASH_SEED, definition, marks
from spanreplay.replay.model import Json, Run
from spanreplay.replay.reexecution.code_changes import code_changes
from spanreplay.replay.reexecution.forms import parsed

Kind: TypeAlias = Literal["commit", "diff", "file", "dependency", "lock", "python", "platform", "image", "variable", "argv", "cwd"]

_RESTORED: Final = frozenset({HASH_SEED, "TZ", "OTEL_EXPORTER_OTLP_TIMEOUT"})
"""Variables that a replay sets itself."""
_NOT_THE_AGENTS: Final = ("SPANREPLAY_", "GIT_", "TEXTDOMAIN")
"""Beginnings of variables that are ours, or that git sets for what it runs, such as ``git bisect run``."""
_NAMED: Final = 8
_PACKAGES: Final = 50
"""Changed distributions whose import names are looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that is not as it was.

    Attributes:
        kind: what sort of thing.
        name: which one.
        recorded: as it was; ``None`` where it was not there, or is not kept.
        actual: as it is.
        detail: more of it, for people.
        modules: import names of a distribution.
        places: its files and folders.
    """

    kind: Kind
    name: str
    recorded: str | None = None
    actual: str | None = None
    detail: str = ""
    modules: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    def summary(self) -> str:
        """One line for people."""
        what = {
            "commit": "commit",
            "diff": "the uncommitted changes",
            "file": f"the file {self.name}",
            "dependency": f"dependency {self.name}",
            "lock": f"the lock file {self.name}",
            "variable": f"variable {self.name}",
            "argv": "the arguments",
            "cwd": "the working folder",
            "image": "the container's image",
            "python": "Python",
            "platform": "the machine",
        }[self.kind]
        if self.kind in ("diff", "file", "lock") or (self.recorded is None and self.actual is None):
            verb = {"diff": "have changed", "variable": "has another value"}.get(self.kind, "has changed")
            return f"{what} {verb}{self.detail}"
        return f"{what} {self.recorded or 'none'} → {self.actual or 'none'}{self.detail}"

    def to_json(self) -> dict[str, Any]:
        """As under ``replay.versions.changed``."""
        return {name: getattr(self, name) for name in ("kind", "name", "recorded", "actual")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The recorded versions against the present ones.

    Attributes:
        changed: what is not as it was.
        equal: what is.
        unknown: what the record, or this machine, does not tell.
        code: the present working tree, as ``spanreplay.run.code``.
    """

    changed: tuple[Change, ...] = ()
    equal: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    code: Json = None
    same_files: bool = False
    """The files that the command was started from are as they were."""

    def lines(self) -> list[str]:
        """For people: what has changed, and in one line what has not."""
        same = f"as recorded: {', '.join(self.equal)}" if self.equal else ""
        if not self.changed:
            return [f"versions {same}"] if same else []
        shown = [f"  {change.summary()}" for change in self.changed[:_NAMED]]
        if len(self.changed) > _NAMED:
            shown.append(f"  and {len(self.changed) - _NAMED} more")
        return ["changed since it was recorded:", *shown, *([f"  {same}"] if same else [])]

    def to_json(self) -> dict[str, Any]:
        """As ``replay.versions``."""
        return {"changed": [change.to_json() for change in self.changed], "equal": list(self.equal), "unknown": list(self.unknown)}

    def entry(self) -> dict[str, Any]:
        """As in a ledger."""
        return {**asdict(self)}

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Self:
        """Read :meth:`entry` back."""
        changed = [{**c, "modules": tuple(c["modules"]), "places": tuple(c["places"])} for c in entry["changed"]]
        return cls(
            changed=tuple(Change(**c) for c in changed),
            equal=tuple(entry["equal"]),
            unknown=tuple(entry["unknown"]),
            code=entry["code"],
            same_files=entry.get("same_files") is True,
        )


def present_code(runs: Sequence[Run], folder: Path) -> Json:
    """The working tree around a folder, as ``spanreplay.run.code``; ``None`` where the record has none to compare it with.

    Args:
        runs: the recorded runs.
        folder: where the replay is started.
    """
    command = recorded_command(runs)
    if command is None or not isinstance(command.code, dict):
        return None
    from spanreplay.recording.code import code_of

    found = code_of(folder, recorded_redactor(runs))
    return None if found is None else found.to_json()


def recorded_redactor(runs: Sequence[Run]) -> Redactor:
    """Takes out what was taken out when the runs were recorded."""
    policy = next((run.redaction for run in runs if run.redaction), None)
    try:
        return redactor_for(RedactionPolicy.from_json(policy) if policy else None)
    except PolicyError:  # a damaged record
        return redactor_for(None)


def recorded_command(runs: Sequence[Run]) -> Run | None:
    """The run that knows the versions of a recorded command."""
    return next((run for run in runs if run.is_command and isinstance(run.definition, dict)), None)


def compare(runs: Sequence[Run], redactor: Redactor, code: Json, *, in_process: bool = False) -> Comparison | None:
    """Compare a recorded command with this process; ``None`` where the record has none.

    Args:
        runs: the recorded runs.
        redactor: of the recorded policy, so that both sides are redacted alike.
        code: the present working tree.
        in_process: this process is not the recorded command: its arguments, folder and files say nothing.
    """
    command = recorded_command(runs)
    if command is None:
        return None
    was, now = command.definition, parsed(definition(redactor))
    present_marks = marks(os.environ, redactor)
    equal: list[str] = []
    unknown: list[str] = []
    changed = [*_code(command, now, code, equal, unknown)]
    had = len(equal)
    if not in_process and not any(change.kind in ("commit", "diff") for change in changed):  # else these tell of the same files
        changed += _files(was, now, equal)
    same_files = len(equal) > had
    changed += _dependencies(was, now, equal, unknown)
    changed += _plain("python", _python(was), _python(now), "Python", equal)
    changed += _plain("platform", _platform(was, now), _platform(now, was), "machine", equal)
    changed += _plain("image", _image(was), _image(now), "image", equal)
    changed += _variables(was, now, command.variables, present_marks, equal)
    if not in_process:
        changed += _command(was, now, equal)
    return Comparison(changed=tuple(changed), equal=tuple(equal), unknown=tuple(unknown), code=code, same_files=same_files)


def _code(command: Run, now: Json, code: Json, equal: list[str], unknown: list[str]) -> Iterator[Change]:
    recorded = command.code
    if not isinstance(recorded, dict):
        was, present = (_at(side, "versions", "code", "commit") for side in (command.definition, now))
        if was is not None or present is not None:
            yield from _plain("commit", was, present, "commit", equal)
        else:
            unknown.append("code")
        return
    if not isinstance(code, dict):
        unknown.append("code")
        return
    found = code_changes(recorded, code)
    commits = recorded.get("commit"), code.get("commit")
    if found is None:
        equal.append("code")
        return
    for source in found.sources:
        files = found.files(source)
        detail = f" ({_listed(files)})" if files else f" ({found.why})" if found.why else ""
        if source == "commit":
            yield Change(kind="commit", name="commit", recorded=_short(commits[0]), actual=_short(commits[1]), detail=detail)
        else:
            yield Change(kind="diff", name="uncommitted changes", detail=detail)
    if not found.sources:
        equal.append("code")  # another commit, of the same code


def _files(was: Json, now: Json, equal: list[str]) -> Iterator[Change]:
    before, after = _map(was, "files"), _map(now, "files")
    changed = [name for name in before if name in after and before[name] != after[name]]
    yield from (Change(kind="file", name=name, recorded=before[name], actual=after[name]) for name in changed)
    if before and not changed and before.keys() == after.keys() and "code" not in equal:
        equal.append(_listed(list(before)))


def _dependencies(was: Json, now: Json, equal: list[str], unknown: list[str]) -> Iterator[Change]:
    before, after = (_at(side, "versions", "dependencies") for side in (was, now))
    lines = [[line for line in _list(_at(side, "packages")) if isinstance(line, str)] for side in (before, after)]
    if not lines[0] or not lines[1]:
        if _at(before, "digest") == _at(after, "digest"):
            equal.append("packages")
        else:
            unknown.append("dependencies")
        return
    had, has = (_versions(side) for side in lines)
    names = sorted(name for name in had.keys() | has.keys() if had.get(name) != has.get(name))
    for number, name in enumerate(names):
        modules, places = _of_distribution(name) if name in has and number < _PACKAGES else ((), ())
        yield Change(kind="dependency", name=name, recorded=had.get(name), actual=has.get(name), modules=modules, places=places)
    locks = _at(before, "lock"), _at(after, "lock")
    if locks[0] != locks[1]:
        yield Change(kind="lock", name=str(_at(locks[1], "file") or _at(locks[0], "file")))
    if not names:
        equal.append("packages")


def _versions(lines: Sequence[str]) -> dict[str, str]:
    """Name to version; to all of them, for one that is there twice."""
    found: dict[str, str] = {}
    for line in lines:
        name, _, version = line.partition("==")
        found[name] = f"{found[name]}, {version}" if name in found else version
    return found


def _of_distribution(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Its import names, and where these are."""
    from importlib import metadata  # not while an agent starts, unless one has changed

    try:
        distribution = metadata.distribution(name)
        files = distribution.files or ()
        tops = dict.fromkeys(file.parts[0] for file in files if file.suffix == ".py" and not file.parts[0].startswith(".."))
        places = tuple(str(distribution.locate_file(top)) for top in tops)
    except Exception:  # noqa: BLE001 — whatever is installed there
        return (), ()
    return tuple(top.removesuffix(".py") for top in tops), places


def _variables(was: Json, now: Json, recorded: Json, present: Mapping[str, str], equal: list[str]) -> Iterator[Change]:
    before, after = _map(was, "environment"), _map(now, "environment")
    compared = sorted(name for name in before.keys() | after.keys() if name not in _RESTORED and not name.startswith(_NOT_THE_AGENTS))
    names = [name for name in compared if _without_image(name, before.get(name)) != _without_image(name, after.get(name))]
    yield from (Change(kind="variable", name=name, recorded=before.get(name), actual=after.get(name)) for name in names)
    known = recorded if isinstance(recorded, dict) else {}
    marked = known.keys() | present.keys() if known else set()
    others = sorted(name for name in marked if known.get(name) != present.get(name) and not name.startswith(_NOT_THE_AGENTS))
    for name in others:
        detail = "" if name in known and name in present else " (it was not set)" if name not in known else " (it is not set any more)"
        yield Change(kind="variable", name=name, detail=detail)
    if not names and not others:
        equal.append("variables")


def _without_image(name: str, value: str | None) -> str | None:
    """The image that a variable names is compared by itself."""
    if name != "OTEL_RESOURCE_ATTRIBUTES" or value is None:
        return value
    return ",".join(pair for pair in value.split(",") if not pair.strip().startswith("container.image.")) or None


def _command(was: Json, now: Json, equal: list[str]) -> Iterator[Change]:
    before, after = (_list(_at(side, "argv")) for side in (was, now))
    if before and after:  # a proxy may know of no command
        yield from _plain("argv", " ".join(map(str, before[1:])), " ".join(map(str, after[1:])), "arguments", equal)
    yield from _plain("cwd", _at(was, "cwd"), _at(now, "cwd"), "working folder", equal)


def _plain(kind: Kind, recorded: Any, actual: Any, word: str, equal: list[str]) -> Iterator[Change]:
    if recorded != actual:
        yield Change(
            kind=kind, name=word, recorded=None if recorded is None else str(recorded), actual=None if actual is None else str(actual)
        )
    elif recorded is not None:
        equal.append(word)


def _python(side: Json) -> str | None:
    version, implementation = _at(side, "python", "version"), _at(side, "python", "implementation")
    return None if version is None else f"{version}" if implementation in (None, "cpython") else f"{version} ({implementation})"


def _platform(side: Json, other: Json) -> str | None:
    """As far as both sides tell."""
    told = (name for name in ("system", "machine", "distribution") if _at(other, "platform", name) is not None)
    parts = [_at(side, "platform", name) for name in told]
    return " ".join(str(part) for part in parts if part is not None) or None


def _image(side: Json) -> str | None:
    image = _at(side, "image")
    return " ".join(f"{k}={v}" for k, v in sorted(image.items())) if isinstance(image, dict) and image else None


def _at(value: Json, *names: str) -> Json:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _map(value: Json, name: str) -> dict[str, str]:
    found = _at(value, name)
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _short(commit: Json) -> str | None:
    return commit[:12] if isinstance(commit, str) else None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
