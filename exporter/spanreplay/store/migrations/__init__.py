"""The schema's history, one numbered module a step. A step that has been released is never edited; a new one is added."""

from typing import Final

from spanreplay.store.migrations import (
    m0001_tables,
    m0002_views,
    m0003_sizes,
    m0004_source_losses,
    m0005_pieces,
    m0006_history,
    m0007_retention,
    m0008_ends,
    m0009_extents,
    m0010_digests,
    m0011_seals,
    m0012_journal_seals,
)

MIGRATIONS: Final[tuple[tuple[int, str, tuple[str, ...]], ...]] = (
    (1, "tables", m0001_tables.STATEMENTS),
    (2, "views", m0002_views.STATEMENTS),
    (3, "sizes", m0003_sizes.STATEMENTS),
    (4, "source_losses", m0004_source_losses.STATEMENTS),
    (5, "pieces", m0005_pieces.STATEMENTS),
    (6, "history", m0006_history.STATEMENTS),
    (7, "retention", m0007_retention.STATEMENTS),
    (8, "ends", m0008_ends.STATEMENTS),
    (9, "extents", m0009_extents.STATEMENTS),
    (10, "digests", m0010_digests.STATEMENTS),
    (11, "seals", m0011_seals.STATEMENTS),
    (12, "journal_seals", m0012_journal_seals.STATEMENTS),
)
"""Number, name and SQL statements, in order."""

SCHEMA_VERSION: Final = MIGRATIONS[-1][0]
