"""Content out of the database: found by its digest, put together from its pieces, verified."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from spanreplay.store.errors import DamagedStoreError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

_DEPTH: Final = 8
"""How often pieces of pieces are looked for; what this version writes takes three."""
_SHA256: Final = re.compile(r"sha256:([0-9a-f]{16})[0-9a-f]{48}").fullmatch
_NEAR: Final = 16
"""Rows apart from which on content is not read in one go."""
What: TypeAlias = Literal["digest", "text"]
_DIGESTS: Final = "SELECT digest FROM blobs WHERE key IN (SELECT unnest($1::UBIGINT[]))"
_PLACES: Final = "SELECT rowid FROM blobs WHERE key IN (SELECT unnest($1::UBIGINT[]))"
_TEXTS: Final = "SELECT digest, text FROM blobs WHERE rowid IN (SELECT unnest($1::BIGINT[]))"
_CONTENT: Final = "SELECT digest, text, parts, rowid FROM blobs WHERE rowid IN (SELECT unnest($1::BIGINT[]))"
_DATA: Final = "SELECT digest, data FROM blobs WHERE rowid IN (SELECT unnest($1::BIGINT[]))"
_DIGESTS_BY_DIGEST: Final = "SELECT digest FROM blobs WHERE key IS NULL AND digest IN (SELECT unnest($1))"
_TEXTS_BY_DIGEST: Final = "SELECT digest, text FROM blobs WHERE key IS NULL AND digest IN (SELECT unnest($1))"
_PLACES_BY_DIGEST: Final = "SELECT rowid FROM blobs WHERE key IS NULL AND digest IN (SELECT unnest($1))"
_Stored = tuple[str | bytes | None, str | None]
"""Text or data, and the JSON of parts."""
_Row = tuple[str | bytes, list[str]]
"""Text or data, and parts."""


def key_of(digest: str) -> int | None:
    """The number that content is looked up by: comparing it takes a fraction of the time that comparing digests takes."""
    found = _SHA256(digest)
    return int(found[1], 16) if found else None


def select_blobs(
    connection: "Connection", digests: Iterable[str], what: What, keys: Mapping[str, int | None] | None = None
) -> list[tuple[Any, ...]]:
    """Content that is there: the digest, and what is asked for beside it.

    Args:
        connection: may read.
        digests: of what content.
        what: is asked for.
        keys: the :func:`key_of` each of the digests, where these are at hand.
    """
    if keys is None:
        keys = {digest: key_of(digest) for digest in digests}
    known, others = _divided(keys)
    found: list[tuple[Any, ...]] = []
    if known:
        if what == "digest":
            rows = connection.execute(_DIGESTS, [known]).fetchall()
        else:  # Where they are first: what lies elsewhere is then not decompressed.
            places = connection.execute(_PLACES, [known]).fetchall()
            rows = connection.execute(_TEXTS, [[place for (place,) in places]]).fetchall() if places else []
        found = [row for row in rows if row[0] in keys]
    if others:
        found += connection.execute(_DIGESTS_BY_DIGEST if what == "digest" else _TEXTS_BY_DIGEST, [others]).fetchall()
    return found


def _divided(keys: Mapping[str, int | None]) -> tuple[list[int], list[str]]:
    return [*{key for key in keys.values() if key is not None}], [digest for digest, key in keys.items() if key is None]


def _read(connection: "Connection", digests: AbstractSet[str]) -> dict[str, _Stored]:
    """Content that is there, and with it texts that lie beside it: the pieces of a text were written just before it."""
    known, others = _divided({digest: key_of(digest) for digest in digests})
    places = connection.execute(_PLACES, [known]).fetchall() if known else []
    places += connection.execute(_PLACES_BY_DIGEST, [others]).fetchall() if others else []
    if not places:
        return {}
    rows = connection.execute(_CONTENT, [_with_near(sorted(place for (place,) in places))]).fetchall()
    found: dict[str, _Stored] = {digest: (text, parts) for digest, text, parts, _ in rows if text is not None or parts is not None}
    data = [place for digest, text, parts, place in rows if text is None and parts is None and digest in digests]
    if data:
        found.update((digest, (value, None)) for digest, value in connection.execute(_DATA, [data]).fetchall())
    return found


def _with_near(places: Sequence[int]) -> list[int]:
    """The same places, and those just before and after each."""
    found: list[int] = []
    end = 0
    for place in places:
        found += range(max(end, place - _NEAR), place + _NEAR)
        end = max(end, place + _NEAR)
    return found


def load_content(connection: "Connection", digests: Iterable[str], damaged: list[str] | None = None) -> dict[str, bytes | str]:
    """Content by digest, text as text where it was kept so; what is not there, or lacks a piece, is left out.

    Args:
        connection: may read.
        digests: what is wanted.
        damaged: where given, content that is not what its digest says is left out too, and named here.

    Raises:
        DamagedStoreError: content is not what its digest says.
    """
    wanted = {*digests}
    read: dict[str, _Stored] = {}
    rows: dict[str, _Row] = {}
    missing = wanted
    for _ in range(_DEPTH):
        if not missing:
            break
        if not missing <= read.keys():
            read.update(_read(connection, missing - read.keys()))
        new: dict[str, _Row] = {digest: _row(*read[digest]) for digest in missing & read.keys()}
        rows.update(new)
        missing = {digest for _, parts in new.values() for digest in parts[1::2]} - rows.keys()
    whole = _Whole(rows, damaged)
    return {digest: data for digest in sorted(wanted) if (data := whole.content(digest)) is not None}


def _row(data: str | bytes | None, parts: str | None) -> _Row:
    return data if data is not None else b"", json.loads(parts) if parts else []


class _Whole:
    """Puts content together. Texts that begin alike, as requests of one conversation do, are verified from where they part."""

    def __init__(self, rows: Mapping[str, _Row], damaged: list[str] | None) -> None:
        self._rows = rows
        self._damaged = damaged
        self._done: dict[str, bytes | str | None] = {}
        self._begun: dict[tuple[int, str], tuple[int, Any]] = {}
        """What was verified, and the part after it, to what is verified then: a number for it, and its hash so far."""

    def content(self, digest: str, depth: int = 0) -> bytes | str | None:
        if digest in self._done:
            return self._done[digest]
        row = self._rows.get(digest)
        data: bytes | str | None = None
        if row is not None and depth <= _DEPTH:
            data, parts = row
            data = self._together(digest, parts, depth) if parts else self._verified(digest, sha256(_bytes(data)).hexdigest(), data)
        self._done[digest] = data
        return data

    def _together(self, digest: str, parts: Sequence[str], depth: int) -> bytes | str | None:
        pieces: list[bytes | str] = []
        place, state = 0, sha256()
        done, begun = self._done, self._begun
        for number, part in enumerate(parts):
            piece = (done[part] if part in done else self.content(part, depth + 1)) if number % 2 else part
            if piece is None:
                return None
            pieces.append(piece)
            known = begun.get((place, part))
            if known is None:
                state = state.copy()
                state.update(_bytes(piece))
                known = begun[place, part] = len(begun) + 1, state
            place, state = known
        try:
            data: bytes | str = "".join(pieces)  # type: ignore[arg-type]  # most often
        except TypeError:
            data = b"".join(map(_bytes, pieces))
        return self._verified(digest, state.hexdigest(), data)

    def _verified(self, digest: str, found: str, data: bytes | str) -> bytes | str | None:
        if digest == "sha256:" + found:
            return data
        what = f"content {digest} has been changed: its {len(_bytes(data))} bytes now have the digest sha256:{found}."
        if self._damaged is None:
            raise DamagedStoreError(f"{what} Restore runs.duckdb from a copy, or import the run again into a new store.")
        self._damaged.append(what)
        return None


def _bytes(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else data
