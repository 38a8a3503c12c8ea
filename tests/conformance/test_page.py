"""The page of the conformance suite says what was measured, and shows a driver that is there."""

from conformance.page import PAGE, page


def test_the_page_is_what_the_results_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: PYTHONPATH=tests python -m conformance.page"
