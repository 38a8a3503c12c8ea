"""Shortcuts of a replay at the methods of model SDKs, one module an SDK; see :mod:`spanreplay.instrumentation.shortcut`."""
