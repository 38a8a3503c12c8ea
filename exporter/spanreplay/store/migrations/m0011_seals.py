"""Schema 11: what was written of a run and of its traces is summed up, so that a row that was changed, added or deleted by hand shows."""

from typing import Final

STATEMENTS: Final = (
    "ALTER TABLE runs ADD COLUMN digest VARCHAR",
    """COMMENT ON COLUMN runs.digest IS
        'sha256 of its row, of its steps and of its history as they were derived; NULL where an older version did.'""",
    "ALTER TABLE run_traces ADD COLUMN n_records BIGINT",
    "COMMENT ON COLUMN run_traces.n_records IS 'Spans, other versions of spans and log records of the trace when its runs were derived.'",
    "ALTER TABLE run_traces ADD COLUMN checksum UBIGINT",
    "COMMENT ON COLUMN run_traces.checksum IS 'Of the digests of these, and of who delivered them.'",
)
