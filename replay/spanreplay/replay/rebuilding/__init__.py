"""Spans to ordered runs: the tree, calls without their doubles, the order, the grade and the reasons for it."""
