"""Readers of trace files: one module a format, recognised by content. A new format is one new file here."""
