"""Schema 5: content in pieces, each kept once; found by a number, which takes an eighth of the time that its digest takes.

Long texts are compressed by zstd, which takes a quarter of the room of what DuckDB chooses by itself for texts of less than 4 kB. The
compression of a column is decided when its table is made, so the tables are made anew.
"""

import re
from typing import Final

from spanreplay.store.migrations import m0001_tables

_LONG: Final = r"\b(attributes|events|links|record|text) VARCHAR\b"


def _anew(table: str, more: str = "") -> tuple[str, ...]:
    """The statements that make a table of schema 1 anew, all columns and comments as they were.

    Args:
        table: its name.
        more: the definitions of new columns.
    """
    (create,) = (statement for statement in m0001_tables.STATEMENTS if statement.startswith(f"CREATE TABLE {table} ("))
    compressed = re.sub(_LONG, r"\1 VARCHAR USING COMPRESSION zstd", create)
    return (
        compressed.replace(f"CREATE TABLE {table} (", f"CREATE TABLE {table}_anew (")[:-1] + more + ")",
        f"INSERT INTO {table}_anew BY NAME FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE {table}_anew RENAME TO {table}",
        *(
            statement
            for statement in m0001_tables.STATEMENTS
            if statement.startswith((f"COMMENT ON TABLE {table} ", f"COMMENT ON COLUMN {table}."))
        ),
    )


STATEMENTS: Final = (
    *_anew("spans"),
    *_anew("span_versions"),
    *_anew("logs"),
    *_anew("blobs", ", parts VARCHAR USING COMPRESSION zstd, key UBIGINT"),
    """COMMENT ON COLUMN blobs.parts IS
        'JSON list, in place of text: literal text and digests of pieces by turns. The view contents has the whole text.'""",
    "COMMENT ON COLUMN blobs.key IS 'The first 64 bits of the digest.'",
    "UPDATE blobs SET key = CAST('0x' || substr(digest, 8, 16) AS UBIGINT) WHERE regexp_matches(digest, '^sha256:[0-9a-f]{64}$')",
    """CREATE VIEW contents AS
        WITH named AS (SELECT digest, unnest(list) AS part, generate_subscripts(list, 1) AS n
            FROM (SELECT digest, from_json(parts, '["VARCHAR"]') AS list FROM blobs WHERE parts IS NOT NULL)),
        inner_texts AS (
            SELECT named.digest, CASE WHEN bool_and(n % 2 = 1 OR text IS NOT NULL)
                THEN string_agg(CASE WHEN n % 2 = 1 THEN part ELSE text END, '' ORDER BY n) END AS text
            FROM named LEFT JOIN blobs ON named.n % 2 = 0 AND blobs.digest = named.part GROUP BY named.digest),
        outer_texts AS (
            SELECT named.digest,
                string_agg(CASE WHEN n % 2 = 1 THEN part ELSE coalesce(blobs.text, inner_texts.text) END, '' ORDER BY n) AS text
            FROM named LEFT JOIN blobs ON named.n % 2 = 0 AND blobs.digest = named.part
                LEFT JOIN inner_texts ON named.n % 2 = 0 AND inner_texts.digest = named.part
            GROUP BY named.digest)
        SELECT blobs.digest, bytes, media, coalesce(blobs.text, outer_texts.text) AS text, data
        FROM blobs LEFT JOIN outer_texts ON outer_texts.digest = blobs.digest""",
    "COMMENT ON VIEW contents IS 'Every content whole: what is in pieces, put together.'",
)
