"""The store: a private journal per process, one database for all, and nothing else that knows SQL."""
