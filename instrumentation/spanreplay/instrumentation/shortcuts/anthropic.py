"""``messages.create`` of Anthropic's SDK."""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from spanreplay.instrumentation.hooks import Hooks
from spanreplay.instrumentation.shims.patching import Patches
from spanreplay.instrumentation.shortcut import Method
from spanreplay.instrumentation.stainless import Stainless, shorten


def _patch(module: Any, patches: Patches) -> None:
    warned = (*module.DEPRECATED_MODELS, *module.MODELS_TO_WARN_WITH_THINKING_ENABLED)

    def unlike(arguments: Mapping[str, Any]) -> bool:
        """The SDK warns of some models."""
        return arguments.get("model") in warned

    sdk = Stainless(
        sys.modules["anthropic"],
        ("Anthropic", "AsyncAnthropic"),
        {"_request_id": "request-id", "_workspace_id": "anthropic-workspace-id"},
        unlike,
    )
    method = Method(sdk=sdk, path="/v1/messages", returned=module.Message)
    for owner in (module.Messages, module.AsyncMessages):
        shorten(owner, "create", method, patches)


def _seam(module: ModuleType, patches: Patches) -> None:
    _patch(module, patches)


_hooks: Final = Hooks("anthropic's methods", {"anthropic.resources.messages.messages": _seam})
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status
