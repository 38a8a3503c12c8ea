"""``query``: reads, in three forms, and can do nothing else."""

import csv
import io
from pathlib import Path

import duckdb
import pytest

from support.command_line import CommandLine


def test_the_forms(demo: CommandLine) -> None:
    sql = "select name, outcome from steps where seq in (2, 5) order by seq"
    assert demo("query", sql).out == "name         outcome\nfind_flight  ok\nbook_hotel   error\n"
    assert demo("query", sql, "--format", "csv").out == "name,outcome\nfind_flight,ok\nbook_hotel,error\n"
    expected = {"schema": 1, "columns": ["name", "outcome"], "rows": [["find_flight", "ok"], ["book_hotel", "error"]]}
    assert demo("query", sql, "--format", "json").json == expected
    assert demo("query", sql, "--json").json == expected


def test_parquet_has_the_types_of_the_answer(demo: CommandLine, tmp_path: Path) -> None:
    sql = (
        "select name, started_ns, 1.5::decimal(4, 2) price, {'a': [1, null]} nested, name, interval 1 day long, uuid '" + "0" * 32 + "' id"
        " from steps order by seq limit 2; "
    )
    file = tmp_path / "an 'answer'.parquet"
    assert demo("query", sql, "--format", "parquet", "-o", str(file)).out == ""
    made = duckdb.read_parquet(str(file))
    assert made.columns == ["name", "started_ns", "price", "nested", "name_1", "long", "id"]
    types = [str(kind) for kind in made.types]
    assert types == ["VARCHAR", "BIGINT", "DECIMAL(4,2)", "STRUCT(a INTEGER[])", "VARCHAR", "INTERVAL", "UUID"]
    rows = made.fetchall()
    assert [row[0] for row in rows] == [row[0] for row in demo("query", sql, "--json").json["rows"]]
    assert rows[0][3] == {"a": [1, None]}


@pytest.mark.parametrize("sql", ["copy steps to 'out'", "select 1; select 2", "select x", "from read_csv('/etc/passwd')"])
def test_parquet_is_of_what_reads_and_nothing_else(demo: CommandLine, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "answer.parquet"
    done = demo("query", sql, "--format", "parquet", "-o", str(file))
    assert (done.code, done.out) == (2, ""), str(done)
    assert not file.exists()


def test_what_is_said_of_forms_that_do_not_go_together(demo: CommandLine) -> None:
    assert "give one of them" in demo("query", "select 1", "--format", "parquet", "--json").err
    assert "-o is for --format parquet" in demo("query", "select 1", "-o", "x.json").err


def test_times_are_texts_in_json_and_other_values_have_a_form(demo: CommandLine) -> None:
    sql = (
        "select started_ns, 'nan'::double a, '\\xAA'::blob b, [1, 2] c, {'k': null} d, 1.5::decimal(4, 2) e, date '2026-01-02' f,"
        " map {1: 2} g, null h, true i, ended_ns from runs"
    )
    row = demo("query", sql, "--json").json["rows"][0]
    assert isinstance(row[0], str)
    assert row[1:-1] == ["NaN", "aa", [1, 2], {"k": None}, "1.50", "2026-01-02", {"1": 2}, None, True]
    assert demo("query", sql).code == 0
    assert len(next(csv.reader(io.StringIO(demo("query", sql, "--format", "csv").out)))) == 11


def test_csv_is_read_back_as_it_was(demo: CommandLine) -> None:
    out = demo("query", "select 'a,b' x, 'line\nbreak' y, '\"quoted\"' z, '' w", "--format", "csv").out
    assert list(csv.reader(io.StringIO(out))) == [["x", "y", "z", "w"], ["a,b", "line\nbreak", '"quoted"', ""]]


def test_no_row_still_has_its_columns(demo: CommandLine) -> None:
    assert demo("query", "select run_id from runs where false").out == "run_id\n"
    assert demo("query", "select run_id from runs where false", "-v").err.splitlines()[-1] == "0 rows"


@pytest.mark.parametrize(
    "sql",
    [
        "insert into runs (run_id) values ('x')",
        "update runs set agent = 'x'",
        "delete from runs",
        "drop table runs",
        "create table t (a int)",
        "create view v as select 1",
        "attach 'other.db'",
        "copy runs to 'out.csv'",
        "copy (select 1) to 'out.csv'",
        "export database 'out'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "pragma database_list; select 1",
        "select 1; delete from runs",
        "select * from read_text('secret.txt')",
        "select * from 'secret.txt'",
        "select * from read_csv('secret.txt')",
        "select * from glob('*')",
        "from 'http://127.0.0.1:1/x.csv'",
        "select getenv('HOME')",
        "checkpoint",
        "",
        "select",
        "select nonesuch from runs",
        "nonsense",
    ],
)
def test_nothing_but_reading_the_store(demo: CommandLine, sql: str) -> None:
    Path("secret.txt").write_text("secret-word")
    before = (demo.store / "runs.duckdb").read_bytes()
    done = demo("query", sql)
    assert (done.code, done.out) == (2, ""), done
    assert done.err.startswith("Error: ")
    assert "secret-word" not in done.err
    assert (demo.store / "runs.duckdb").read_bytes() == before
    assert sorted(p.name for p in Path().iterdir()) == ["secret.txt", "store"]


def test_a_wrong_name_is_pointed_at(demo: CommandLine) -> None:
    assert "nonesuch" in demo("query", "select nonesuch from runs").err
    assert "LINE 1" in demo("query", "select nonesuch from runs").err


def test_every_table_that_the_help_names_is_there(demo: CommandLine) -> None:
    text = " ".join(demo("query", "--help").out.split())
    names = text.partition("Tables: ")[2].partition(". ")[0].replace("; views: ", ", ").split(", ")
    assert len(names) >= 10
    for name in names:
        assert demo("query", f"select count(*) from {name.split(' ')[0]}").code == 0


def test_no_table_of_any_form_sends_a_terminal_what_it_obeys(spanreplay: CommandLine) -> None:
    from fixtures.runs.spans import tool

    assert spanreplay("import", spanreplay.file("t.json", tool(1, name="evil\x1b[31m\x07"))).code == 0
    for form in ("table", "csv", "json"):
        printed = spanreplay("query", "select tool from tool_calls", "--format", form).out
        assert "evil" in printed
        assert not {"\x1b", "\x07"} & set(printed)
