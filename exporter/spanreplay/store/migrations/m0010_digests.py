"""Schema 10: a store whose digests are all of what is in its rows says so. Older versions left that of a span put together as it was."""

from typing import Final

STATEMENTS: Final = (
    """INSERT INTO meta SELECT 'digests', 'exact'
        WHERE NOT EXISTS (FROM spans) AND NOT EXISTS (FROM span_versions) AND NOT EXISTS (FROM logs)""",
)
