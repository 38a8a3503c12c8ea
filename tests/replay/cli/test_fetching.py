"""Commands fetch traces from a back end, as whoever the options say."""

from collections.abc import Mapping

import pytest

from recordings.servers import Reply
from support.back_end import TRACE, TRACES, back_end, ok
from support.command_line import CommandLine


def test_commands_take_urls_and_say_who_asks(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(path: str, query: dict[str, list[str]], headers: Mapping[str, str]) -> Reply:
        return ok({"result": TRACES}) if headers.get("authorization") == "Bearer t0" else (401, "text/plain", b"no")

    with back_end(answer) as (url, _):
        target = f"jaeger+{url}/{TRACE}"
        monkeypatch.setenv("MY_TOKEN", "t0")
        assert spanreplay("import", target, "--bearer-token-env", "MY_TOKEN").code == 0
        assert spanreplay("replay", f"{target}#{TRACE[:8]}", "--bearer-token-env", "MY_TOKEN").code == 0
        assert spanreplay("verify", target, "--bearer-token-env", "MY_TOKEN", "--json").json["whole"] is True
        done = spanreplay("show", target, "--bearer-token-env", "NOT_SET")
        assert (done.code, "found none named 'NOT_SET'" in done.err) == (2, True)
        assert spanreplay("show", target).code == 3
    assert len(spanreplay("runs", "--json").json["runs"]) == 1
