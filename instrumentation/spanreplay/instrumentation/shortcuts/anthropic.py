"""``messages.create`` of Anthropic's SDK."""

import sys
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any, Final

from spanreplay.instrumentation.hooks import Hooks
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.stainless import Posted, Stainless, shorten


def _patch(module: ModuleType, patches: Patches) -> None:
    messages: Any = module
    event = messages.RawMessageStreamEvent
    method = Posted(
        sdk=_sdk(sys.modules["anthropic"], messages),
        path="/v1/messages",
        returned=messages.Message,
        streams=(messages.Stream[event], messages.AsyncStream[event]),
    )
    for owner in (messages.Messages, messages.AsyncMessages):
        shorten(owner, "create", method, patches)


@cache
def _sdk(package: ModuleType, messages: Any) -> Stainless:
    warned = (*messages.DEPRECATED_MODELS, *messages.MODELS_TO_WARN_WITH_THINKING_ENABLED)

    def unlike(arguments: Mapping[str, Any]) -> bool:
        """The SDK warns of some models."""
        return arguments.get("model") in warned

    ids = {"_request_id": "request-id", "_workspace_id": "anthropic-workspace-id"}
    return Stainless(package, ("Anthropic", "AsyncAnthropic"), ids, unlike)


_hooks: Final = Hooks("anthropic's methods", {"anthropic.resources.messages.messages": _patch})
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status
