"""Proxies that record and replay agents which cannot be patched: other languages, closed binaries.

They are ordinary recorded programs. The model proxy sends what it gets through an HTTP client of ours, whose seam makes each exchange a
step and answers it in a replay; the MCP proxy passes each request through the Boundary itself.
"""
