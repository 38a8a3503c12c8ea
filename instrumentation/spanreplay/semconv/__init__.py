"""Attribute names: see :mod:`spanreplay.semconv.attributes`."""
