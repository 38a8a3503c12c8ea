"""Inputs are compared by what every recording has of them."""

from collections import Counter
from types import SimpleNamespace

import pytest

from spanreplay.content.codec import encode
from spanreplay.replay.reexecution.forms import comparable


@pytest.mark.parametrize(
    ("value", "older"),
    [
        (Counter("aab"), '{"x":{"a":2,"b":1}}'),
        (Counter([1]), '{"x":{"$t":"dict","v":[[1,1]]}}'),
        (range(3), '{"x":{"$t":"text","v":"range(0, 3)"}}'),
        (SimpleNamespace(a=1), '{"x":{"$t":"text","v":"namespace(a=1)"}}'),
    ],
)
def test_a_recording_that_has_less_of_a_type_is_no_difference(value: object, older: str) -> None:
    assert comparable(encode({"x": value}).text) == comparable(older)


def test_a_text_deeper_than_any_of_the_codec_is_compared_as_it_is() -> None:
    deep = "[" * 500 + '{"$t":"text","v":"x","c":"y"}' + "]" * 500
    assert comparable(deep) != comparable(deep.replace('"x"', '"z"'))
