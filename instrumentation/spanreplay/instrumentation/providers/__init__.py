"""One file per model API; each defines ``PROVIDER`` and is found by :func:`spanreplay.instrumentation.provider.registry`."""
