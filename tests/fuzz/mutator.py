"""Changes inputs: bytes as a transmission would damage them, JSON values as a program would write them wrongly."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, Final

_WORDS: Final = (
    "",
    " ",
    "0",
    "-1",
    "null",
    "true",
    "NaN",
    "[]",
    "{}",
    '{"a":',
    '["',
    "\x00",
    "\ud800",
    "é",
    "unknown",
    "0x",
    "1e400",
    "x" * 3000,
)
_NUMBERS: Final = (0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"))
_BYTES: Final = (
    b"\x00",
    b"\xff",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"\\",
    b"\n",
    b"\xc3",
    b"\xed\xa0\x80",
    b"1" * 400,
    b"\x0a\xff\xff\xff\xff\x0f",
)


def changed_bytes(data: bytes, chance: random.Random, others: tuple[bytes, ...] = ()) -> bytes:
    """The input with a few changes; half of the times, where it is JSON, changes of its values."""
    if chance.random() < 0.5:
        found = _changed_json(data, chance)
        if found is not None:
            return found
    out = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        _change(out, chance, others)
    return bytes(out)


def _change(out: bytearray, chance: random.Random, others: tuple[bytes, ...]) -> None:
    at = chance.randrange(len(out) + 1)
    match chance.randrange(7):
        case 0 if out:
            out[min(at, len(out) - 1)] ^= 1 << chance.randrange(8)
        case 1:
            del out[at : at + chance.choice((1, 2, 8, 64, 1000))]
        case 2:
            out[at:at] = chance.choice(_BYTES)
        case 3:
            size = chance.choice((4, 30, 500))
            out[at:at] = out[at : at + size]
        case 4:
            del out[at:]
        case 5 if others:
            other = chance.choice(others)
            start = chance.randrange(len(other) + 1)
            out[at:at] = other[start : start + chance.choice((10, 200, 3000))]
        case _:
            out[at : at + 1] = bytes([chance.randrange(256)])


def _changed_json(data: bytes, chance: random.Random) -> bytes | None:
    try:
        lines = data.decode().splitlines()
        try:
            values, one = [json.loads(data)], True
        except ValueError:
            values, one = [json.loads(line) for line in lines], False
        made = changed_value(values[0] if one else values, chance)
        return _dumped(made).encode() if one else "\n".join(map(_dumped, made if isinstance(made, list) else [made])).encode()
    except (ValueError, RecursionError):
        return None


def _dumped(value: Any) -> str:
    return json.dumps(value)


def changed_value(value: Any, chance: random.Random) -> Any:
    """A copy of a JSON value in which a few members are something else, missing, doubled or exchanged."""
    try:
        made = [copy.deepcopy(value)]
        for _ in range(chance.randint(1, 5)):
            places = list(_places(made))
            holder, key = places[int(len(places) * chance.random() ** 0.7) - 1]  # the inner ones rather than the outer ones
            _change_member(holder, key, places, chance)
    except RecursionError:  # it has been nested again and again
        return _odd(chance)
    return made[0]


def _places(root: Any) -> Iterator[tuple[Any, Any]]:
    """Every member of every list and object, with what holds it."""
    stack = [root]
    while stack:
        holder = stack.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], dict | list):
                stack.append(holder[key])


def _change_member(holder: Any, key: Any, places: list[tuple[Any, Any]], chance: random.Random) -> None:
    other_holder, other = chance.choice(places)
    match chance.randrange(8):
        case 0 if isinstance(holder, dict):
            del holder[key]
        case 1 if isinstance(holder, list) and len(holder) > 1:
            del holder[key]
        case 2 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case 3 if isinstance(holder, dict) and isinstance(other_holder, dict):
            holder[other] = holder[key]
        case 4:
            holder[key] = copy.deepcopy(other_holder[other]) if not isinstance(other_holder[other], dict | list) else _odd(chance)
        case 5 if isinstance(holder[key], str) and len(holder[key]) > 1:
            text = holder[key]
            holder[key] = _changed_text(text, chance)
        case 6:
            holder[key] = chance.choice(([holder[key]], {"a": holder[key]}, json.dumps(holder[key])))
        case _:
            holder[key] = _odd(chance)


def _changed_text(text: str, chance: random.Random) -> str:
    """A text that holds JSON is changed within, any other is cut or doubled."""
    if text[:1] in "[{":
        try:
            return json.dumps(changed_value(json.loads(text), chance))
        except (ValueError, RecursionError):
            pass
    at = chance.randrange(len(text))
    return chance.choice((text[:at], text[at:], text + text, text[:at] + chance.choice(_WORDS) + text[at:], text.swapcase()))


def _odd(chance: random.Random) -> Any:
    deep: Any = chance.choice(_WORDS)
    for _ in range(chance.choice((1, 3, 70, 250))):
        deep = [deep] if chance.random() < 0.5 else {"type": deep}
    return chance.choice(
        (None, True, False, [], {}, [[]], [None], {"": None}, {"type": "text"}, deep, chance.choice(_WORDS), chance.choice(_NUMBERS))
    )
