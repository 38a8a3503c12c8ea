"""Data: who serves a model API at which host, where that is somebody else than the API's inventor."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

VENDORS: Final[Mapping[str, str]] = {
    "openai.azure.com": "azure.ai.openai",
    "cognitiveservices.azure.com": "azure.ai.openai",
    "services.ai.azure.com": "azure.ai.inference",
    "models.ai.azure.com": "azure.ai.inference",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "amazonaws.com": "aws.bedrock",
    "api.mistral.ai": "mistral_ai",
    "codestral.mistral.ai": "mistral_ai",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x_ai",
    "ml.cloud.ibm.com": "ibm.watsonx.ai",
}
"""The host, or the end of it, to the value of ``gen_ai.provider.name`` that the GenAI conventions have for it."""


@lru_cache(maxsize=256)
def at(host: str) -> str | None:
    """Who serves the APIs of a host; ``None``: whoever the API is named after."""
    lower = host.lower()
    found = (vendor for place, vendor in VENDORS.items() if lower == place or lower.endswith(("." + place, "-" + place)))
    return next(found, None)
