"""What is dropped from attributes is remembered, in whichever way they drop it."""

import logging
from collections import OrderedDict
from typing import Any

import pytest
from opentelemetry.attributes import BoundedAttributes

from spanreplay.exporter import overflow as module
from spanreplay.exporter.overflow import Overflow, overflow, watch


class _Deleting:
    """Attributes that find the oldest without asking for all names, as some SDK may."""

    def __init__(self, *, maxlen: int | None = None, immutable: bool = True) -> None:
        self._dict: dict[str, Any] = {}
        self.maxlen, self.dropped, self.immutable = maxlen, 0, immutable

    def __setitem__(self, name: str, value: object) -> None:
        if self.maxlen is not None and len(self._dict) >= self.maxlen:
            self._drop()
            self.dropped += 1
        self._dict[name] = value

    def _drop(self) -> None:
        del self._dict[next(iter(self._dict))]


class _Popping(_Deleting):
    """As of SDKs before 1.44."""

    def _drop(self) -> None:
        drop: Any = OrderedDict.popitem if isinstance(self._dict, OrderedDict) else type(self._dict).popitem
        drop(self._dict, last=False)


class _Span:
    def __init__(self, attributes: Any) -> None:
        self._attributes = attributes


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_kinds", {})


@pytest.mark.parametrize("kind", [BoundedAttributes, _Deleting, _Popping])
def test_what_is_dropped_is_remembered(kind: Any) -> None:
    span: Any = _Span(kind(maxlen=2, immutable=False))
    watch(span)
    logging.getLogger(BoundedAttributes.__module__).setLevel(logging.ERROR)
    try:
        for number in range(5):
            span._attributes[f"k{number}"] = number
    finally:
        logging.getLogger(BoundedAttributes.__module__).setLevel(logging.NOTSET)
    assert overflow(span) == ({"k0": 0, "k1": 1, "k2": 2}, 0)
    assert span._attributes._dict == {"k3": 3, "k4": 4}


def test_finding_out_how_says_nothing_to_the_application(caplog: pytest.LogCaptureFixture) -> None:
    span: Any = _Span(BoundedAttributes(maxlen=2, immutable=False))
    watch(span)
    assert isinstance(span._attributes._dict, Overflow)
    assert caplog.records == []
    span._attributes["a"] = span._attributes["b"] = span._attributes["c"] = 1
    assert len(caplog.records) == 1


def test_setting_what_is_watched_takes_no_method_of_ours() -> None:
    span: Any = _Span(BoundedAttributes(maxlen=2, immutable=False))
    watch(span)
    assert type(span._attributes._dict).__setitem__ is dict.__setitem__
    assert type(span._attributes._dict).__delitem__ is dict.__delitem__
