"""Where the model APIs of a run are: the hosts that live model calls may reach, and no others."""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from spanreplay.replay.isolation.reachable import Address
from spanreplay.replay.model import Run

_URLS: Final = re.compile(
    r"((AZURE_)?OPENAI|ANTHROPIC|GEMINI|GOOGLE|MISTRAL|GROQ|COHERE|CO|DEEPSEEK|XAI|OLLAMA|OPENROUTER|LITELLM|TOGETHER|BEDROCK|VERTEX)"
    r"_(BASE_URL|API_BASE|API_URL|ENDPOINT|HOST)|AWS_ENDPOINT_URL_BEDROCK_RUNTIME|(HTTPS?|ALL)_PROXY",
    re.IGNORECASE,
)
"""Variables in which SDKs are told where a model API or a proxy is."""
_PORTS: Final = {"http": 80, "https": 443}


def model_hosts(runs: Sequence[Run], environment: Mapping[str, str]) -> tuple[Address, ...]:
    """Host and port of every model API that the runs called, and that the environment names.

    Args:
        runs: those that are executed again.
        environment: of the program.
    """
    urls = [s.wire.url for run in runs for s in run.steps if s.kind in ("model_call", "retrieval") and s.wire is not None]
    urls += [value if "//" in value else f"//{value}" for name, value in environment.items() if value and _URLS.fullmatch(name)]
    return tuple(dict.fromkeys(found for url in urls if (found := address(url)) is not None))


def address(url: str) -> Address | None:
    """Host and port of a URL, or of ``HOST:PORT``; port 0 where neither it nor its scheme says one; ``None`` where it has no host."""
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    return None if not host else (host, port if port is not None else _PORTS.get(parts.scheme, 0))
