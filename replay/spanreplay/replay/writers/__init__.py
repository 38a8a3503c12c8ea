"""Writers of trace files for other tools: one module a format, see :mod:`spanreplay.replay.writer`. A new format is one new file here."""
