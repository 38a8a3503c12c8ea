"""What people are asked about a tool call of a Haystack agent, and say: a replay asks nobody.

``BlockingConfirmationStrategy.run`` (public) asks its policy whether to ask, and then its user interface; only that last one is a step.
"""

import copy
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import call, here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered, attempt
from spanreplay.instrumentation.hooks import expect
from spanreplay.instrumentation.manual import record_decision
from spanreplay.instrumentation.patching import Patches

FRAMEWORK: Final = "haystack"
LAYER: Final = "haystack.Tool"


def patch(module: ModuleType, patches: Patches) -> None:
    """Observe the strategies of ``haystack.hooks.human_in_the_loop.strategies``.

    Raises:
        UnsupportedError: they are not as they are known here.
    """
    expect(module.BlockingConfirmationStrategy, "run", ["self", "tool_name", "tool_description", "tool_params"])
    patches.replace(module.BlockingConfirmationStrategy, "run", _observed_confirmation)


def _observed_confirmation(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, **options: Any) -> Any:
        scope = here()
        if scope is None:
            return original(self, **options)
        asking = copy.copy(self)
        asking.confirmation_ui = _Asking(self.confirmation_ui, scope, options.get("tool_call_id"))
        return original(asking, **options)

    return run


class _Asking:
    """A user interface whose answers are steps: in a replay nobody is asked."""

    def __init__(self, ui: Any, scope: Scope, call_id: str | None) -> None:
        self._ui = ui
        self._scope = scope
        self._call_id = call_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ui, name)

    def get_user_confirmation(self, tool_name: str, tool_description: str, tool_params: dict[str, Any]) -> Any:
        """Ask, or give the recorded answer."""
        ask = functools.partial(self._ui.get_user_confirmation, tool_name, tool_description, tool_params)
        asked = functools.partial(record_decision, tool_name, by=FRAMEWORK, arguments=tool_params, call_id=self._call_id)
        asked("require_approval")
        given = codec.encode({"tool": tool_name, "arguments": tool_params})
        answer = call(self._scope, Call(kind="human", name=tool_name, input=given), ask)
        attempt(self._scope, "what a person has said", lambda: self._tell(tool_name, tool_params, answer))
        return answer

    def _tell(self, tool_name: str, tool_params: dict[str, Any], answer: Any) -> None:
        rejected, reason = answer.action == "reject", answer.feedback
        changed = answer.new_tool_params or tool_params
        record_decision(tool_name, "deny" if rejected else "allow", by="human", reason=reason, arguments=changed, call_id=self._call_id)
        if rejected:
            offered = Offered(name=tool_name)
            framework.not_made(self._scope, offered, tool_params, "rejected", layer=LAYER, call_id=self._call_id)
