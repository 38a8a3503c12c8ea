"""The redactor of a policy: it knows the secrets of this process, as its variables are when it is asked for."""

import pytest

from spanreplay.content.redaction import RedactionPolicy
from spanreplay.exporter.redacting import redactor_for


def test_a_variable_that_is_set_later_is_known_to_the_next_redactor(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = RedactionPolicy.default()
    text = "the key is opensesame-1234"
    assert redactor_for(policy).text(text)[1] == 0
    monkeypatch.setenv("SHOP_API_KEY", "opensesame-1234")
    assert redactor_for(policy).text(text)[1] == 1
    monkeypatch.delenv("SHOP_API_KEY")
    assert redactor_for(policy).text(text)[1] == 0


def test_what_one_replay_has_learnt_is_not_known_to_the_next() -> None:
    policy = RedactionPolicy.default()
    first = redactor_for(policy)
    first.learn("opensesame-1234")
    text = "the key is opensesame-1234"
    assert first.text(text)[1] == 1
    assert redactor_for(policy).text(text)[1] == 0
