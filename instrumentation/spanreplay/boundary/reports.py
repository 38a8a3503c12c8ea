"""Spans that a framework makes for the service of its own maker, of calls that its adapter records: no part of the record."""

from typing import Final

scopes: Final[set[str]] = set()
"""Names of their instrumentation scopes. An adapter adds its framework's while it is installed."""
