"""``chat.completions.create`` and ``responses.create`` of OpenAI's SDK."""

import sys
from functools import cache
from types import ModuleType
from typing import Any, Final

from spanreplay.instrumentation.hooks import Hooks
from spanreplay.instrumentation.shims.patching import Patches
from spanreplay.instrumentation.shortcut import Method
from spanreplay.instrumentation.stainless import Stainless, shorten


def _patch_chat(module: ModuleType, patches: Patches) -> None:
    _patch(module, patches, ("Completions", "AsyncCompletions"), "/chat/completions", "ChatCompletion")


def _patch_responses(module: ModuleType, patches: Patches) -> None:
    _patch(module, patches, ("Responses", "AsyncResponses"), "/responses", "Response")


def _patch(module: Any, patches: Patches, owners: tuple[str, ...], path: str, returned: str) -> None:
    method = Method(sdk=_sdk(sys.modules["openai"]), path=path, returned=getattr(module, returned))
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
