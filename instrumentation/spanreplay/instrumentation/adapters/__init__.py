"""Plug-ins: one file each, found by their place in this folder."""
