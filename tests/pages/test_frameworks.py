"""docs/frameworks.md says what the contract of tests/frameworks has seen."""

from pages.frameworks import PAGE, page


def test_the_page_is_what_was_seen() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: PYTHONPATH=tests python -m pages.frameworks"
