"""What of an interpreter would be recorded.

It imports the frameworks that are installed, since only then is it known whether their seams are the ones known here.
"""

import contextlib
import importlib
import io
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import Any, Final

from spanreplay.instrumentation import hooks
from spanreplay.recording import plugins

_GROUP: Final = "opentelemetry_instrumentor"
_LIMITS: Final = (
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One adapter or transport, and the library that it observes.

    Attributes:
        name: of the adapter or transport.
        installed: the distribution and its version; ``None`` where the library is not installed.
        status: ``active``, ``not installed``, or why it cannot be observed.
    """

    name: str
    installed: str | None
    status: str

    @property
    def ok(self) -> bool:
        """It is observed, or is not there."""
        return self.status in ("active", "not installed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something that would make a record, or what a back end shows of it, less than it could be.

    Attributes:
        ok: it is only to be known.
        detail: what was found.
        advice: what to do about it.
    """

    ok: bool
    detail: str
    advice: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """An interpreter as :func:`examine` found it."""

    python: str
    libraries: tuple[Library, ...]
    remarks: tuple[Remark, ...]

    @property
    def ok(self) -> bool:
        """Nothing has to be changed."""
        return all(one.ok for one in self.libraries) and all(one.ok for one in self.remarks)


def examine() -> Interpreter:
    """Examine this interpreter. What is installed for it is taken out again."""
    remarks = (*_instrumentors(), *_limits())
    return Interpreter(python=sys.executable, libraries=tuple(_libraries()), remarks=remarks)


def _libraries() -> Iterator[Library]:
    owners = metadata.packages_distributions()
    for name in plugins.names():
        module: Any = importlib.import_module(name)
        found = hooks.known.get(module.NAME)
        seams = found.modules if found is not None else (module.NAME,)
        there = [seam for seam in seams if _is_there(seam)]
        if not there:
            yield Library(name=module.NAME, installed=None, status="not installed")
            continue
        status = _status(module, there)
        version = None if status == "not installed" else _version(there[0], owners)
        yield Library(name=module.NAME, installed=version, status=status)


def _version(module: str, owners: Mapping[str, list[str]]) -> str:
    """The distribution of a module, and its version. Several share a name such as ``google``."""
    parts = module.split(".")
    named = sorted(owners.get(parts[0], ()), key=lambda owner: owner.lower() != "-".join(parts[:2]))
    return f"{named[0]} {metadata.version(named[0])}" if named else parts[0]


def _is_there(module: str) -> bool:
    try:
        return find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _status(module: Any, seams: list[str]) -> str:
    module.install()
    try:
        for seam in seams:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(ImportError):
                importlib.import_module(seam)
        told: str = module.status()
    except Exception as error:  # noqa: BLE001 — whatever importing a framework may raise
        return f"cannot be imported: {type(error).__name__}: {error}"
    finally:
        module.uninstall()
    return "not installed" if told == "waiting" else told


def _instrumentors() -> Iterator[Remark]:
    places: dict[str, set[str]] = defaultdict(set)
    for point in metadata.entry_points(group=_GROUP):
        if point.dist is not None:
            places[point.module].add(f"{point.dist.name} {point.dist.version}")
    for module, owners in sorted(places.items()):
        if len(owners) > 1:
            yield Remark(
                ok=False,
                detail=f"{' and '.join(sorted(owners))} both install {module}: one overwrites the other's files",
                advice=f"uninstall one of them; spanreplay needs neither, and reads the spans of {min(owners).split(' ')[0]} too",
            )
    if places:
        named = sorted({owner for owners in places.values() for owner in owners})
        told = "a call that they see too counts once, and what only they tell of no replay waits for"
        yield Remark(ok=True, detail=f"other instrumentations are installed: {', '.join(named)}; {told}")


def _limits() -> Iterator[Remark]:
    for name in _LIMITS:
        value = os.environ.get(name)
        if value:
            yield Remark(
                ok=False, detail=f"{name}={value} cuts what spans carry to a back end; the store is not cut", advice=f"unset {name}"
            )


def to_json(found: Interpreter) -> dict[str, Any]:
    """As JSON values."""
    return asdict(found)


def from_json(made: dict[str, Any]) -> Interpreter:
    """What :func:`to_json` gave, in another process."""
    return Interpreter(
        python=made["python"],
        libraries=tuple(Library(**one) for one in made["libraries"]),
        remarks=tuple(Remark(**one) for one in made["remarks"]),
    )
