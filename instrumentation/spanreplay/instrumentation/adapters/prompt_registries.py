"""Prompts fetched from Langfuse, LangSmith or MLflow: name, version and text are those in force at the model calls that follow.

``Langfuse.get_prompt`` (langfuse 5.0.4), ``Client.pull_prompt_commit`` (langsmith 0.15.1), which ``pull_prompt`` calls, and
``MlflowClient.load_prompt`` (mlflow 3.17.2), which ``mlflow.genai.load_prompt`` calls.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.instrumentation import prompts
from spanreplay.instrumentation.hooks import Hooks, Seam, expect
from spanreplay.instrumentation.shims.patching import Patches

NAME: Final = "prompt_registries"

Told = tuple[str, object, object, object]
"""Registry, name, version and text of a prompt."""


def _langfuse(found: Any) -> Told:
    return "langfuse", found.name, found.version, found.prompt


def _langsmith(found: Any) -> Told:
    return "langsmith", f"{found.owner}/{found.repo}", found.commit_hash, found.manifest


def _mlflow(found: Any) -> Told:
    return "mlflow", found.name, found.version, found.template


def _seam(owner: str, method: str, parameters: list[str], told: Callable[[Any], Told]) -> Seam:
    def observed(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def fetch(self: Any, *args: Any, **kwargs: Any) -> Any:
            found = original(self, *args, **kwargs)
            scope = here()
            if scope is not None and found is not None:
                try:
                    prompts.fetched(*told(found))
                except Exception:  # noqa: BLE001 — telemetry never breaks the agent
                    scope.session.failed(f"a prompt of {owner}")
            return found

        return fetch

    def patch(module: ModuleType, patches: Patches) -> None:
        expect(getattr(module, owner), method, parameters)
        patches.replace(getattr(module, owner), method, observed)

    return patch


_hooks: Final = Hooks(
    NAME,
    {
        "langfuse._client.client": _seam("Langfuse", "get_prompt", ["self", "name"], _langfuse),
        "langsmith.client": _seam("Client", "pull_prompt_commit", ["self", "prompt_identifier"], _langsmith),
        "mlflow.tracking.client": _seam("MlflowClient", "load_prompt", ["self", "name_or_uri"], _mlflow),
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status
