"""``chat.completions.create`` and ``responses.create`` of OpenAI's SDK."""

import sys
from functools import cache
from types import ModuleType
from typing import Any, Final

from spanreplay.instrumentation.hooks import Hooks
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.stainless import Posted, Stainless, shorten


def _patch_chat(module: Any, patches: Patches) -> None:
    _patch(module, patches, ("Completions", "AsyncCompletions"), "/chat/completions", module.ChatCompletion, module.ChatCompletionChunk)


def _patch_responses(module: Any, patches: Patches) -> None:
    _patch(module, patches, ("Responses", "AsyncResponses"), "/responses", module.Response, module.ResponseStreamEvent)


def _patch(module: Any, patches: Patches, owners: tuple[str, ...], path: str, returned: Any, event: Any) -> None:
    sdk = _sdk(sys.modules["openai"])
    method = Posted(
        sdk=sdk,
        path=path,
        returned=returned,
        streams=(module.Stream[event], module.AsyncStream[event]),
        options=sdk.known(security={"bearer_auth": True}),
    )
    for owner in owners:
        shorten(getattr(module, owner), "create", method, patches)


@cache
def _sdk(package: ModuleType) -> Stainless:
    return Stainless(package, ("OpenAI", "AsyncOpenAI"), {"_request_id": "x-request-id"})


_hooks: Final = Hooks(
    "openai's methods",
    {
        "openai.resources.chat.completions.completions": _patch_chat,
        "openai.resources.responses.responses": _patch_responses,
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status
