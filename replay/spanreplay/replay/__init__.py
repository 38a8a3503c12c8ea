"""Rebuild ordered runs from spans, and re-execute them with every call answered from the record."""
