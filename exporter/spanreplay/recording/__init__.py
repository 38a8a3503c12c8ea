"""Recording: ``start()``, ``stop()``, ``status()``."""

from spanreplay.recording.children import child_env, child_environment, finish_command
from spanreplay.recording.control import Status, start, status, stop

__all__ = ["Status", "child_env", "child_environment", "finish_command", "start", "status", "stop"]
