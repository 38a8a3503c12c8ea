"""The words that differ, kept as evidence."""

from spanreplay.replay.reexecution.evidence import fragments


def test_words_that_differ_are_whole_and_short_ones_have_company() -> None:
    assert fragments("Be formal, please.", "Be informal, please.") == (["formal"], ["informal"])
    assert fragments("Refund within 30 days.", "Refund within 14 days.") == (["within 30 days"], ["within 14 days"])
    assert fragments("one\ntwo\nthree", "one\nthree") == (["two"], [])
    assert fragments({"a": "same", "b": [1]}, {"a": "same", "b": ["new text"]}) == (["1"], ["new text"])
    assert fragments("x" * 5000, "y" * 5000)[0] == ["x" * 300]
