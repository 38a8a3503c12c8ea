"""The readable view of a typed JSON tree: the tags gone, the values left."""

import json
from typing import Any, Final

from spanreplay.content._library import ARGUMENTS, CALLED, CLASS, FACTORY
from spanreplay.content._types import KIND, PAYLOAD, TAG


def is_tag(tree: object) -> bool:
    """Tell a tag from an ordinary object: both members are there. Other people's JSON has ``$t`` too, but alone."""
    return isinstance(tree, dict) and PAYLOAD in tree and isinstance(tree.get(TAG), str)


def plain_tree(tree: Any) -> Any:
    """Return the plain JSON value that a typed tree reads as; a tag that does not fit its payload reads as the payload."""
    if isinstance(tree, list):
        return [plain_tree(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if not is_tag(tree):
        return {key: plain_tree(item) for key, item in tree.items()}
    return _plain_tag(tree)


def without_classes(tree: Any) -> Any:
    """Return a typed tree as recordings have it that were made before classes of the standard library were kept."""
    if isinstance(tree, list):
        return [without_classes(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    dropped = _LATER.get(tree[TAG], frozenset()) if is_tag(tree) else frozenset()
    made = {key: without_classes(item) for key, item in tree.items() if key not in dropped}
    if CLASS in tree and dropped and tree[TAG] == "dict" and _is_pairs(made[PAYLOAD]):
        pairs = made[PAYLOAD]
        if all(isinstance(key, str) and key != TAG for key, _ in pairs):
            return dict(pairs)
    return made


_LATER: Final = {
    **dict.fromkeys(("text", "dict", "tuple"), frozenset({CLASS, ARGUMENTS, FACTORY})),
    **dict.fromkeys(("datetime", "time"), frozenset({CALLED})),
}


def _plain_tag(tree: dict[str, Any]) -> Any:
    name, payload = tree[TAG], tree[PAYLOAD]
    if tree.get(KIND) == "exception" and isinstance(payload, dict):
        return {"type": name, "message": payload.get("message", "")}
    if tree.get(KIND) == "model" and isinstance(payload, dict):
        return plain_tree({**payload, **(tree.get("extra") or {})})
    if name in {"dict", "OrderedDict"} and _is_pairs(payload):
        return {_key(key): plain_tree(item) for key, item in payload}
    if name == "timedelta" and _is_numbers(payload, 3):
        return payload[0] * 86400 + payload[1] + payload[2] / 1_000_000
    if name == "complex" and _is_numbers(payload, 2):
        return str(complex(*payload))
    if name == "str" and isinstance(payload, list):
        return "".join(str(item) for item in payload)
    return plain_tree(payload)


def _is_pairs(payload: object) -> bool:
    return isinstance(payload, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in payload)


def _is_numbers(payload: object, count: int) -> bool:
    return isinstance(payload, list) and len(payload) == count and all(isinstance(item, int | float) for item in payload)


def _key(tree: Any) -> str:
    key = plain_tree(tree)
    return key if isinstance(key, str) else json.dumps(key, ensure_ascii=False, separators=(",", ":"))
