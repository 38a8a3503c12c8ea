"""Takes the machine out of a recording: its paths, its name, its user, its processes."""

import re
import socket
from pathlib import Path
from typing import Any, Final

_DROPPED: Final = re.compile(
    r"^(host\.(id|ip|mac)|process\.(pid|parent_pid|command.*|executable\..*|owner|runtime\..*)"
    r"|os\.(version|build_id|name)|os_release|thread\.(id|name))$"
)
"""Resource and span attributes that tell of the machine only."""


class Scrubber:
    """Replaces what tells of the machine, in every text.

    Args:
        paths: folders and what to call them, the longest first.
        urls: addresses of servers and what to call them.
    """

    def __init__(self, paths: dict[Path, str], urls: dict[str, str]) -> None:
        words = {str(path): name for path, name in paths.items()} | urls
        words |= {url.removeprefix("http://"): name.removeprefix("http://") for url, name in urls.items()}
        words |= {socket.gethostname(): "host"}
        ports = {url.rpartition(":")[2]: name for url, name in urls.items()}
        self._words = sorted(words.items(), key=lambda item: -len(item[0]))
        self._ports = set(ports)

    def text(self, text: str) -> str:
        """One text."""
        for word, name in self._words:
            text = text.replace(word, name)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value: every text in it, and attributes of the machine left out."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value if not (isinstance(item, dict) and _DROPPED.match(str(item.get("key", ""))))]
        if isinstance(value, dict):
            if value.get("intValue") in self._ports:
                return {"intValue": "8000"}
            return {self.text(key): self.value(item) for key, item in value.items()}
        return value
