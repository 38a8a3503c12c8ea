"""Traces that real instrumentations wrote, each with the recipe that makes it anew and what it has to be read as; see README.md."""
