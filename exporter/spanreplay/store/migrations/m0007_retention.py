"""Schema 7: what may not be pruned, and what was."""

from typing import Final

STATEMENTS: Final = (
    """CREATE TABLE holds (
        hold_id VARCHAR, run_id VARCHAR, session_id VARCHAR, reason VARCHAR, placed_ns BIGINT, placed_by VARCHAR,
        released_ns BIGINT, released_by VARCHAR, release_reason VARCHAR)""",
    "COMMENT ON TABLE holds IS 'Runs and sessions that are not pruned while a hold is on them; a row stays when it is released.'",
    "COMMENT ON COLUMN holds.released_ns IS 'NULL while it is in force.'",
    """CREATE TABLE pruned (
        run_id VARCHAR, session_id VARCHAR, agent VARCHAR, started_ns BIGINT, spans BIGINT, reason VARCHAR, pruned_ns BIGINT,
        pruned_by VARCHAR)""",
    "COMMENT ON TABLE pruned IS 'Runs that were in this store and are not any more: when they were pruned, by whom and why.'",
)
