"""Schema 12: what is said of a journal is summed up, so that a changed number of lost records shows."""

from typing import Final

STATEMENTS: Final = (
    "ALTER TABLE journals ADD COLUMN digest VARCHAR",
    "COMMENT ON COLUMN journals.digest IS 'sha256 of its row as it was written; NULL where an older version did.'",
)
