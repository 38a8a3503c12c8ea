"""Readers of span vocabularies: one module a dialect. A new dialect is one new file here."""
