"""Where a model proxy sends what it gets."""

import pytest

from spanreplay.replay.proxy.upstreams import UpstreamError, addresses, upstreams


def test_known_ones_are_where_the_environment_has_them() -> None:
    found = {made.name: made for made in upstreams([], {"OPENAI_BASE_URL": "https://gateway.example/llm/v1/", "CO_API_URL": "nonsense"})}
    assert found["openai"].url == "https://gateway.example/llm/v1"
    assert found["cohere"].url == "https://api.cohere.com"
    assert addresses("http://127.0.0.1:9", found.values())["OPENAI_BASE_URL"] == "http://127.0.0.1:9/openai"


def test_given_ones_replace_and_add() -> None:
    found = {made.name: made for made in upstreams(["openai=http://127.0.0.1:1/v1", "mine=https://m.example", "http://h/a=b/"], {})}
    assert str(found["openai"]) == "openai=http://127.0.0.1:1/v1"
    assert found["mine"].url == "https://m.example"
    assert str(found[""]) == "http://h/a=b"
    assert upstreams([str(made) for made in found.values()], {}) == tuple(found.values())


@pytest.mark.parametrize("text", ["ftp://h", "http://", "http://user:secret@h", "http://h?q=1", "A B=http://h", "x=", "http://h#f", "h:80"])
def test_what_is_none_is_said(text: str) -> None:
    with pytest.raises(UpstreamError, match="an upstream is"):
        upstreams([text], {})
