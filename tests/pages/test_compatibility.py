"""The page of what traces of others come back as says what the tests read."""

from pages.compatibility import PAGE, page


def test_the_page_is_what_the_recordings_and_routes_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: PYTHONPATH=tests python -m pages.compatibility"
