"""Schema 3: how large a step is, so that it is known without being read how much a group of rows would hold."""

from typing import Final

STATEMENTS: Final = (
    "ALTER TABLE steps ADD COLUMN bytes BIGINT",
    "COMMENT ON COLUMN steps.bytes IS 'Characters of its input and output together; NULL in steps of older versions.'",
)
