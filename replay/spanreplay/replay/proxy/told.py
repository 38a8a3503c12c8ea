"""Tool calls that a proxy cannot see, from what the model is told of them: attested, not observed.

A request to a model holds the conversation so far: what the model has asked for, and what came of it. Each answer that was in no request
before is a call that the agent has made since. It is a step of grade ``structure``: nothing of ours was there when it ran. In a replay the
agent's tools run again, and tell again; that one tells something else is seen at the model call that it is told to.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from spanreplay.boundary.boundary import call
from spanreplay.boundary.scope import Scope
from spanreplay.content.canonical import canonical_json
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.http_body import content_decoded
from spanreplay.instrumentation.provider import recognise
from spanreplay.semconv import attributes as names

_LAYER: Final = "proxy"
_REMEMBERED: Final = 100_000


class Told:
    """What has been told so far, in all conversations that pass a proxy."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def steps(self, scope: Scope, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Make a step of each call whose answer a request tells for the first time.

        Args:
            scope: where the steps are made.
            method: of the request.
            target: its path and query.
            headers: its headers, names in lower case.
            body: as it came.
        """
        view = content_decoded(body, headers.get("content-encoding", ""))
        found = recognise(method, target, headers.get("content-type", ""), view) if view else None
        if found is None:
            return
        told = found[0].request(found[1]).attributes.get(names.GEN_AI_INPUT_MESSAGES)
        for name, arguments, call_id, response in self._new(json.loads(told) if isinstance(told, str) else []):
            offered = Offered(name=name, attributes={names.STEP_ATTESTED: True})
            made = framework.tool_call(scope, offered, arguments, layer=_LAYER, call_id=call_id)
            if made is not None:
                call(scope, made, lambda response=response: response)  # type: ignore[misc]

    def _new(self, messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any, str | None, Any]]:
        """Name, arguments, id and answer of each call answered for the first time: the same words before it were in no request yet."""
        before = sha256()
        open_calls: list[Mapping[str, Any]] = []
        for message in messages:
            before.update(canonical_json(message).encode("utf-8", "surrogatepass"))
            for place, part in enumerate(message.get("parts") or ()):
                if part.get("type") == "tool_call":
                    open_calls.append(part)
                elif part.get("type") == "tool_call_response":
                    asked = _answered(open_calls, part)
                    if asked is not None and self._is_new(before.digest() + place.to_bytes(4, "big")):
                        yield str(asked.get("name")), asked.get("arguments") or {}, asked.get("id"), part.get("response")

    def _is_new(self, key: bytes) -> bool:
        if key in self._known:
            return False
        self._known[key] = None
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return True


def _answered(open_calls: list[Mapping[str, Any]], response: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The call that a response answers, by its id, else by its name, else the earliest; it is open no more."""
    for key, value in (("id", response.get("id")), ("name", response.get("name"))):
        if value:
            found = next((asked for asked in open_calls if asked.get(key) == value), None)
            if found is not None:
                open_calls.remove(found)
                return found
            if key == "id":
                return None
    return open_calls.pop(0) if open_calls else None
