"""Which credentials a replayed program wants to find, though none is used: SDKs refuse to start without one."""

from collections.abc import Mapping, Sequence
from typing import Final

from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.origin import is_foreign

PLACEHOLDER: Final = "not-needed-in-a-replay"
"""Stands for a credential that was set while recording and is not now: SDKs refuse to start without one."""

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "azure": ("AZURE_OPENAI_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "gcp": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "vertex": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "mistral": ("MISTRAL_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "x_ai": ("XAI_API_KEY",),
    "cohere": ("CO_API_KEY",),
    "aws": ("AWS_ACCESS_KEY_ID",),
}
"""A word in the name of a provider, and the variables in which its SDK looks for a key: any one of them will do."""
_SECOND_HALF: Final = {"AWS_ACCESS_KEY_ID": "AWS_SECRET_ACCESS_KEY"}
"""A variable that is nothing without another one."""
_ANY_KEY: Final = (_KEYS["openai"], _KEYS["anthropic"], _KEYS["google"])
"""For a provider of another name, such as a framework's own."""


def needed_credentials(runs: Sequence[Run], environment: Mapping[str, str]) -> set[str]:
    """Names of the variables that held a credential when the command was recorded, or that the SDK of a recorded provider wants one in.

    Args:
        runs: what is replayed.
        environment: of the replay.
    """
    definitions = [r.definition for r in runs if isinstance(r.definition, dict)]
    told = [made["credentials"] for made in definitions if isinstance(made.get("credentials"), list)]
    held = {str(name) for names in told for name in names}
    for model in (s.versions.get("model") for r in runs if not told or is_foreign(r) for s in r.steps if s.kind == "model_call"):
        provider = str(model.get("provider") if isinstance(model, dict) else "").lower()
        names = next((names for word, names in _KEYS.items() if word in provider), None)
        for either in _ANY_KEY if names is None else [names]:
            held |= set() if any(name in environment for name in either) else {either[0]}
    return held | {_SECOND_HALF[name] for name in held if name in _SECOND_HALF}
