"""Content out of the database: found by its digest, put together from its pieces, verified."""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256
from json.decoder import scanstring  # type: ignore[attr-defined]  # it has been there since Python 2.6
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from spanreplay.store.encoding import Content
from spanreplay.store.errors import DamagedStoreError
from spanreplay.store.late import Joined, whole

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

_DEPTH: Final = 8
"""How often pieces of pieces are looked for; what this version writes takes three."""
_SHA256: Final = re.compile(r"sha256:([0-9a-f]{16})[0-9a-f]{48}").fullmatch
_NEAR: Final = 16
"""Rows apart from which on content is not read in one go."""
_FEW: Final = 16
"""Stretches of rows, such as the content of a conversation lies in."""
_BEGINNING: Final = 64
"""Characters that the parts of one text and of a later one begin with alike, where they have more in common."""
What: TypeAlias = Literal["digest", "text"]
_DIGESTS: Final = """SELECT digest FROM blobs JOIN (SELECT unnest(from_json($1, '["UBIGINT"]')) AS key) USING (key)"""
"""Thousands of them are handed over in a third of the time that a list of numbers takes."""
_PLACES: Final = """SELECT rowid FROM blobs WHERE key IN (SELECT unnest(from_json($1, '["UBIGINT"]')))"""
_TEXTS: Final = "SELECT digest, text FROM blobs WHERE rowid IN (SELECT unnest($1::BIGINT[]))"
_CONTENT: Final = "SELECT digest, text, parts, rowid FROM blobs WHERE"
_LYING_WHOLE: Final = "SELECT digest, rowid FROM blobs WHERE rowid IN (SELECT unnest($1::BIGINT[])) AND parts IS NULL"
_DATA: Final = "SELECT digest, data FROM blobs WHERE rowid IN (SELECT unnest($1::BIGINT[]))"
_DIGESTS_BY_DIGEST: Final = "SELECT digest FROM blobs WHERE key IS NULL AND digest IN (SELECT unnest($1))"
_TEXTS_BY_DIGEST: Final = "SELECT digest, text FROM blobs WHERE key IS NULL AND digest IN (SELECT unnest($1))"
_PLACES_BY_DIGEST: Final = "SELECT rowid FROM blobs WHERE key IS NULL AND digest IN (SELECT unnest($1))"
_Stored = tuple[str | bytes | None, str | None]
"""Text or data, and the JSON of parts."""


class _Parts(NamedTuple):
    """Parts of a text, and what they have in common with those of another one."""

    parts: list[str]
    like: str | None = None
    """Digest of the other one."""
    common: int = 0
    """How many are the same, from the beginning."""


_Row = tuple[str | bytes | None, _Parts | None]
"""Text or data, or parts."""


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
            rows = connection.execute(_DIGESTS, [json.dumps(known)]).fetchall()
        else:  # Where they are first: what lies elsewhere is then not decompressed.
            places = connection.execute(_PLACES, [json.dumps(known)]).fetchall()
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
    places = connection.execute(_PLACES, [json.dumps(known)]).fetchall() if known else []
    places += connection.execute(_PLACES_BY_DIGEST, [others]).fetchall() if others else []
    if not places:
        return {}
    stretches = _stretches(sorted(place for (place,) in places))
    if len(stretches) <= _FEW:  # named as they are, DuckDB skips what lies between them
        among = " OR ".join(f"rowid BETWEEN ${number} AND ${number + 1}" for number in range(1, 2 * len(stretches), 2))
        rows = connection.execute(f"{_CONTENT} {among}", [end for stretch in stretches for end in stretch]).fetchall()
    else:
        near = [place for first, last in stretches for place in range(first, last + 1)]
        rows = connection.execute(f"{_CONTENT} rowid IN (SELECT unnest($1::BIGINT[]))", [near]).fetchall()
    found: dict[str, _Stored] = {digest: (text, parts) for digest, text, parts, _ in rows if text is not None or parts is not None}
    data = [place for digest, text, parts, place in rows if text is None and parts is None and digest in digests]
    if data:
        found.update((digest, (value, None)) for digest, value in connection.execute(_DATA, [data]).fetchall())
    return found


def _stretches(places: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last of the places that lie near each other, those just before and after them too."""
    found: list[tuple[int, int]] = []
    for place in places:
        first, end = max(0, place - _NEAR), place + _NEAR - 1
        if found and first <= found[-1][1] + 1:
            first = found.pop()[0]
        found.append((first, end))
    return found


def load_content(connection: "Connection", digests: Iterable[str], damaged: list[str] | None = None) -> dict[str, Content]:
    """Content by digest, all of it verified, text as text where it was kept so; what is not there, or lacks a piece, is left out.

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
    reader = _PartsReader()
    for _ in range(_DEPTH):
        if not missing:
            break
        if not missing <= read.keys():
            read.update(_read(connection, missing - read.keys()))
        new: dict[str, _Row] = {
            digest: (data, reader.parts(text, digest) if text else None) for digest, (data, text) in read.items() if digest in missing
        }
        rows.update(new)
        missing = {digest for _, parts in new.values() if parts for digest in parts.parts[1::2]} - rows.keys()
    contents = _Contents(rows, damaged)
    return {digest: data for digest in rows if digest in wanted and (data := contents.content(digest)) is not None}


def take_out_whole(connection: "Connection", given: Mapping[str, tuple[str | None, str | None]], known: AbstractSet[str]) -> set[str]:
    """Deletes texts that lie whole, as older versions kept them, and are given in pieces, to which nothing would refer otherwise.

    Args:
        connection: in a transaction.
        given: content that is about to be added, by digest: its text, or the JSON of its parts.
        known: what of it is there already, in whatever form.

    Returns:
        Digests of what was deleted. What the parts given do not make to the byte stays.
    """
    keys = [key for digest in known if given[digest][1] is not None and (key := key_of(digest)) is not None]
    places = connection.execute(_PLACES, [json.dumps(keys)]).fetchall() if keys else []
    found = connection.execute(_LYING_WHOLE, [[place for (place,) in places]]).fetchall() if places else []
    lying = {digest: place for digest, place in found if digest in known and given[digest][1] is not None}
    if not lying:
        return set()
    rows: dict[str, _Row] = {}
    reader = _PartsReader()
    missing = lying.keys() | set[str]()
    for _ in range(_DEPTH):
        new = {digest: given[digest] for digest in missing if digest in lying or (digest in given and digest not in known)}
        rows.update((digest, (text, reader.parts(parts, digest) if parts else None)) for digest, (text, parts) in new.items())
        rows.update((digest, (whole(text), None)) for digest, text in load_content(connection, missing - new.keys(), []).items())
        missing = {digest for digest in new if (parts := rows[digest][1]) for digest in parts.parts[1::2]} - rows.keys()
        if not missing:
            break
    contents = _Contents(rows, [])
    taken = {digest: place for digest, place in lying.items() if _is_whole(contents, digest)}
    connection.execute("DELETE FROM blobs WHERE rowid IN (SELECT unnest($1::BIGINT[]))", [[*taken.values()]]).fetchall()
    return {*taken}


def _is_whole(contents: "_Contents", digest: str) -> bool:
    try:
        return contents.content(digest) is not None
    except UnicodeEncodeError:  # lone surrogates: not as this version writes it
        return False


class _PartsReader:
    """Reads the parts of texts. What a text has in common with the last one that began alike is not read again, and is the same strings."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[str | None, str, list[str], list[int]]] = {}
        """By its beginning: the digest of what was read last, the JSON of its parts, these, and where each ends."""

    def parts(self, text: str, digest: str) -> _Parts:
        like, last, parts, ends = self._last.get(text[:_BEGINNING], (None, "", [], []))
        count = bisect_left(ends, True, key=lambda end: not text.startswith(last[:end]))
        parts, ends = parts[:count], ends[:count]
        place = ends[-1] if ends else 1
        while text[place : place + 1] == '"':
            part, end = scanstring(text, place + 1, True)
            if text[end : end + 1] != ",":
                if text[end:] != "]":
                    break
                parts.append(part)
                self._last[text[:_BEGINNING]] = digest, text, parts, ends
                return _Parts(parts, like, count)
            parts.append(part)
            place = end + 1
            ends.append(place)
        return _Parts(json.loads(text))  # not as this version writes it


class _Contents:
    """Puts content together. Texts that begin alike, as requests of one conversation do, are verified from where they part."""

    def __init__(self, rows: Mapping[str, _Row], damaged: list[str] | None) -> None:
        self._rows = rows
        self._damaged = damaged
        self._done: dict[str, Content | None] = {}
        self._begun: dict[tuple[int, str, str | None], tuple[int, Any]] = {}
        """What was verified, and the two parts after it, to what is verified then: a number for it, and its hash so far."""
        self._verified_up_to: dict[str, tuple[list[bytes | str], list[tuple[int, Any]]]] = {}
        """Of texts that have parts: these, pieces in place of their digests, and what was verified after each two."""

    def content(self, digest: str, depth: int = 0) -> Content | None:
        if digest in self._done:
            return self._done[digest]
        row = self._rows.get(digest)
        data: Content | None = None
        if row is not None and depth <= _DEPTH:
            data, parts = row
            if parts and parts.parts:
                data = self._together(digest, parts, depth)
            else:
                data = data or b""
                data = self._verified(digest, sha256(_bytes(data)).hexdigest(), data)
        self._done[digest] = data
        return data

    def _together(self, digest: str, row: _Parts, depth: int) -> Content | None:
        pieces, verified = self._verified_up_to.get(row.like or "", ([], []))
        verified = verified[: row.common // 2]
        pieces = pieces[: 2 * len(verified)]
        done, begun, parts = self._done, self._begun, row.parts
        known: tuple[int, Any] = verified[-1] if verified else (0, sha256())
        for number in range(len(pieces), len(parts), 2):
            literal, part = parts[number], parts[number + 1] if number + 1 < len(parts) else None
            pieces.append(literal)
            piece: bytes | str = ""
            if part is not None:
                inner = done[part] if part in done else self.content(part, depth + 1)
                if inner is None:
                    return None
                if isinstance(inner, Joined):  # a text that a span refers to, too
                    inner = done[part] = inner.text()
                piece = inner
                pieces.append(piece)
            place, state = known
            after = begun.get((place, literal, part))
            if after is None:
                state = state.copy()
                state.update(literal.encode())
                state.update(_bytes(piece))
                after = begun[place, literal, part] = len(begun) + 1, state
            known = after
            verified.append(known)
        self._verified_up_to[digest] = pieces, verified
        found = verified[-1][1].hexdigest()
        if bytes in map(type, pieces):
            return self._verified(digest, found, b"".join(map(_bytes, pieces)))
        text = Joined(pieces)  # type: ignore[arg-type]  # texts all of them
        return self._verified(digest, found, text.text() if depth else text)

    def _verified(self, digest: str, found: str, data: Content) -> Content | None:
        if digest == "sha256:" + found:
            return data
        size = len(_bytes(whole(data)))
        what = f"content {digest} has been changed: its {size} bytes now have the digest sha256:{found}."
        if self._damaged is None:
            raise DamagedStoreError(f"{what} Restore runs.duckdb from a copy, or import the run again into a new store.")
        self._damaged.append(what)
        return None


def _bytes(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else data
