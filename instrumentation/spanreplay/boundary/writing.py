"""Putting what is known of a step into attributes, without secrets."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json
from spanreplay.content.codec import Encoded
from spanreplay.content.redaction import Redactor
from spanreplay.semconv import attributes as names

if TYPE_CHECKING:
    from spanreplay.boundary.call import Call
    from spanreplay.boundary.session import Session


def without_secrets(call: "Call", redactor: Redactor) -> "Call":
    """A call without secrets in what names it, which is part of paths, of the span's name and of what is below it."""
    name = redactor.name(call.name)
    span_name = None if call.span_name is None else redactor.name(call.span_name)
    call_id = None if call.call_id is None else redactor.text(call.call_id)[0]
    if name == call.name and span_name == call.span_name and call_id == call.call_id:
        return call
    return replace(call, name=name, span_name=span_name, call_id=call_id)


class Writing:
    """Of one step: what goes into its attributes, and how often a secret was taken out of which."""

    __slots__ = ("_path", "_session", "redacted")

    def __init__(self, session: "Session", path: str) -> None:
        self._session = session
        self._path = path
        self.redacted: dict[str, int] = {}

    def text(self, name: str, text: str) -> str:
        """A text without its secrets, which count for the attribute ``name``."""
        clean, replaced = self._session.redactor.text(text)
        if replaced:
            self.redacted[name] = self.redacted.get(name, 0) + replaced
        return clean

    def typed(self, name: str, text: str) -> str:
        """The same of a text of the typed codec, in whose bytes secrets are looked for too."""
        clean, replaced = self._session.redactor.typed(text)
        if replaced:
            self.redacted[name] = self.redacted.get(name, 0) + replaced
        return clean

    def value(self, name: str, value: Encoded) -> str:
        """The same of a value."""
        return self.typed(name, value.text) if value.typed else self.text(name, value.text)

    def _named(self, name: str, value: str) -> str:
        clean, replaced = self._session.redactor.named(name, value)
        if replaced:
            self.redacted[name] = self.redacted.get(name, 0) + replaced
        return clean

    def put(self, attributes: dict[str, Any], name: str, value: Any) -> None:
        """Add an attribute. ``None`` is left out; what no attribute can hold becomes a description, and is counted."""
        name = self._session.redactor.name(name)
        if isinstance(value, str):
            attributes[name] = self._named(name, value)
        elif isinstance(value, bool | int | float):
            attributes[name] = value
        elif isinstance(value, list | tuple) and all(isinstance(item, str | bool | int | float) for item in value):
            attributes[name] = [self._named(name, item) if isinstance(item, str) else item for item in value]
        elif value is not None:
            self._session.failed(f"the attribute {name} of {self._path}, a {type(value).__name__}, as it is")
            attributes[name] = self.text(name, codec.encode(value).text)

    def put_all(self, attributes: dict[str, Any], given: Mapping[str, Any]) -> None:
        """Add attributes, as :meth:`put` does."""
        redactor = self._session.redactor
        known, clean = redactor.name, redactor.named
        for given_name, value in given.items():
            name = known(given_name)
            if type(value) is str:  # most are, and of most steps there are thirty
                attributes[name], replaced = clean(given_name, value)
                if replaced:
                    self.redacted[name] = self.redacted.get(name, 0) + replaced
            else:
                self.put(attributes, name, value)

    def put_typed(self, attributes: dict[str, Any], value: Encoded, text: str, own: str, standard: str | None) -> None:
        """One text is kept once: under the standard name where it is plain JSON, under ours (with a plain view) otherwise."""
        if standard is None:
            attributes[own] = text
        elif value.typed:
            attributes[own] = text
            attributes[standard] = codec.plain(text)
        else:
            attributes[standard] = text
            if own in self.redacted:
                self.redacted[standard] = self.redacted.pop(own)
        if value.lossy:
            put_lossy(attributes, own)


def put_lossy(attributes: dict[str, Any], *more: str) -> None:
    """Say of further attributes that their values could not be kept as they are."""
    attributes[names.STEP_LOSSY] = canonical_json(sorted({*more, *lossy_in(attributes)}))


def lossy_in(attributes: Mapping[str, Any]) -> list[str]:
    """The attributes that this is said of."""
    text = attributes.get(names.STEP_LOSSY)
    return list(json.loads(text)) if isinstance(text, str) else []
