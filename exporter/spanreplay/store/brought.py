r"""A record and the long texts that nothing before it has: one line, whose texts are digested by whoever loads it, not by who writes it.

The line is ``{"t":"with","n":[<bytes of each text>]}``, then the texts as they are, in UTF-8 and without line feeds, then the JSON of the
record, in which ``{"$blob":0}`` stands for the digest of the first of them. Nothing else in it can look so: in a string the quotes have
backslashes before them, and a map of somebody's own that has such a name is written as pairs.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from spanreplay.store.form import Form

HEAD: Final = b'{"t":"with","n":['
"""How such a line begins."""
_END: Final = b"]}"


def reference(number: int) -> str:
    """The JSON of a reference to a text that the record brings."""
    return f'{{"$blob":{number}}}'


def joined(texts: Sequence[bytes], record: bytes) -> bytes:
    """The line.

    Args:
        texts: in UTF-8, without line feeds.
        record: its JSON.
    """
    return b"".join((HEAD, ",".join([str(len(text)) for text in texts]).encode("ascii"), _END, *texts, record))


def parted(line: bytes) -> tuple[list[Form], bytes]:
    """The texts as records of content, and the record that refers to them by their digests; the reverse of :func:`joined`.

    Raises:
        ValueError: it is no such line.
    """
    place = line.index(_END)
    sizes = [int(size) for size in line[len(HEAD) : place].split(b",")]
    place += len(_END)
    if min(sizes) < 0 or place + sum(sizes) > len(line):
        raise ValueError(sizes)
    texts: list[tuple[str, bytes]] = []
    for size in sizes:
        data = line[place : place + size]
        texts.append((f"sha256:{sha256(data).hexdigest()}", data))
        place += size
    record = line[place:]
    for number, (digest, _) in enumerate(texts):
        record = record.replace(reference(number).encode("ascii"), b'{"$blob":"%s"}' % digest.encode("ascii"))
    return [{"t": "blob", "d": digest, "text": data.decode(), "n": len(data)} for digest, data in texts], record
