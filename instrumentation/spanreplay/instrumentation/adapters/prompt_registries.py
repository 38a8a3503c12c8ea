"""Prompts fetched from Langfuse, LangSmith, MLflow or Phoenix: name, version and text are those in force at the model calls that follow.

``Langfuse.get_prompt`` (langfuse 2.60.10, 5.0.4), ``pull_prompt_commit`` of ``Client`` and ``AsyncClient`` (langsmith 0.15.1), which
``pull_prompt`` calls, ``MlflowClient.load_prompt`` (mlflow 3.17.2), which ``mlflow.genai.load_prompt`` calls, and ``get`` of ``Prompts``
and ``AsyncPrompts`` (arize-phoenix-client 3.5.0), which are ``client.prompts``.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.instrumentation import prompts
from spanreplay.instrumentation.hooks import Hooks, Seam, expect
from spanreplay.instrumentation.patching import Patches

NAME: Final = "prompt_registries"

Told = tuple[str, object, object, object]
"""Registry, name, version and text of a prompt."""
Tells = Callable[[Any, Mapping[str, Any]], Told]
"""From what was found, and the keywords that it was asked with."""


def _langfuse(found: Any, asked: Mapping[str, Any]) -> Told:
    return "langfuse", found.name, found.version, found.prompt


def _langsmith(found: Any, asked: Mapping[str, Any]) -> Told:
    return "langsmith", f"{found.owner}/{found.repo}", found.commit_hash, found.manifest


def _mlflow(found: Any, asked: Mapping[str, Any]) -> Told:
    return "mlflow", found.name, found.version, found.template


def _phoenix(found: Any, asked: Mapping[str, Any]) -> Told:
    """A version does not know the name of its prompt; one that was asked for by its own id goes by that."""
    return "phoenix", asked.get("prompt_identifier") or asked.get("prompt_version_id"), found.id, found._template


def _seam(owner: str, method: str, parameters: list[str], told: Tells) -> Seam:
    def keep(found: Any, asked: Mapping[str, Any]) -> Any:
        scope = here()
        if scope is not None and found is not None:
            try:
                prompts.fetched(*told(found, asked))
            except Exception:  # noqa: BLE001 — telemetry never breaks the agent
                scope.session.failed(f"a prompt of {owner}")
        return found

    def observed(original: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(original):

            @functools.wraps(original)
            async def afetch(self: Any, *args: Any, **kwargs: Any) -> Any:
                return keep(await original(self, *args, **kwargs), kwargs)

            return afetch

        @functools.wraps(original)
        def fetch(self: Any, *args: Any, **kwargs: Any) -> Any:
            return keep(original(self, *args, **kwargs), kwargs)

        return fetch

    def patch(module: ModuleType, patches: Patches) -> None:
        expect(getattr(module, owner), method, parameters)
        patches.replace(getattr(module, owner), method, observed)

    return patch


def _both(*seams: Seam) -> Seam:
    def patch(module: ModuleType, patches: Patches) -> None:
        for seam in seams:
            seam(module, patches)

    return patch


_PULLED: Final = ("pull_prompt_commit", ["self", "prompt_identifier"], _langsmith)
_GOT: Final = ("get", ["self", "prompt_version_id", "prompt_identifier"], _phoenix)
_LANGFUSE: Final = _seam("Langfuse", "get_prompt", ["self", "name"], _langfuse)
_hooks: Final = Hooks(
    NAME,
    {
        "langfuse._client.client": _LANGFUSE,
        "langfuse.client": _LANGFUSE,  # before 3.0
        "langsmith.client": _seam("Client", *_PULLED),
        "langsmith.async_client": _seam("AsyncClient", *_PULLED),
        "mlflow.tracking.client": _seam("MlflowClient", "load_prompt", ["self", "name_or_uri"], _mlflow),
        "phoenix.client.resources.prompts": _both(_seam("Prompts", *_GOT), _seam("AsyncPrompts", *_GOT)),
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status
