"""Schema 4: what the files that traces were imported from had lost, so that it is not forgotten with them."""

from typing import Final

STATEMENTS: Final = (
    "CREATE TABLE source_losses (trace_id VARCHAR, detail VARCHAR)",
    "COMMENT ON TABLE source_losses IS 'What an imported file was known to have lost of a trace, in words; runs of it are incomplete.'",
)
