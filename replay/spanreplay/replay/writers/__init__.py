"""Writers of trace files for other tools: one module a format, with ``NAME`` and ``write(records)``. A new format is one new file here."""
