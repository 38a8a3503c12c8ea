"""Schema 8: a process that was killed is told from one that ended."""

from typing import Final

STATEMENTS: Final = (
    """CREATE OR REPLACE VIEW processes AS
        SELECT process, any_value(host) AS host, any_value(pid) AS pid, min(started_ns) AS started_ns, any_value(argv) AS argv,
            any_value(python) AS python, any_value(versions) AS versions, any_value(forked_from) AS forked_from, count(*) AS journals,
            sum(records) AS records, sum(dropped) AS dropped, sum(crc_errors) AS crc_errors, bool_and(closed) AS ended,
            bool_or(removed AND NOT closed) AS died
        FROM journals GROUP BY process""",
    """COMMENT ON VIEW processes IS
        'Processes that recorded; process is spanreplay.process.id. ended: it said that it had. died: it is gone, and did not say so.'""",
)
