"""Recording: ``start()``, ``stop()``, ``status()``."""

from spanreplay.recording.children import child_env, child_environment
from spanreplay.recording.control import Status, start, status, stop
from spanreplay.recording.root import finish_command

__all__ = ["Status", "child_env", "child_environment", "finish_command", "start", "status", "stop"]
