"""The questions of the page about SQL have the answers that it shows, in ``spanreplay query`` and in a plain DuckDB."""

import pytest

from pages.queries import PAGE, Question, answer, make_store, questions
from spanreplay.store.store import Store

QUESTIONS = list(questions(PAGE.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("queries"))


def test_there_are_ten_at_least() -> None:
    assert len(QUESTIONS) >= 10


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.sql.split("\n")[0][:40])
def test_the_answer_is_that_of_the_page(store: Store, question: Question) -> None:
    assert len(question.answer.splitlines()) > 1
    assert answer(store, question.sql) == question.answer


def test_the_plain_shell_answers_as_well(store: Store) -> None:
    import duckdb

    connection = duckdb.connect(str(store.path / "runs.duckdb"), read_only=True)
    try:
        plain = [connection.execute(question.sql).fetchall() for question in QUESTIONS]
    finally:
        connection.close()
    assert plain == [list(store.query(question.sql).rows) for question in QUESTIONS]


def test_every_table_and_view_that_people_ask_is_on_the_page(store: Store) -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = {str(name) for (name,) in store.query("SELECT view_name FROM duckdb_views() WHERE NOT internal").rows}
    assert {name for name in (*names, "runs", "steps", "spans", "span_versions", "logs") if f"`{name}`" not in page} == set()
