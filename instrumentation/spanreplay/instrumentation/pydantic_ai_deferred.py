"""Calls of Pydantic AI that wait for a person or another system: what is asked and answered, in a later run or by a handler in this one.

A handler (``HandleDeferredToolCalls``, ``Hooks``) may ask a person or call a service: it is a ``human`` step, and a replay asks nobody.
"""

import functools
from collections.abc import Callable, Collection
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import acall, here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.hooks import expect
from spanreplay.instrumentation.manual import record_decision
from spanreplay.instrumentation.patching import Patches

FRAMEWORK: Final = "pydantic_ai"
LAYER: Final = "pydantic_ai.ToolManager"
PUT_OFF: Final = "pydantic_ai.put_off"
"""In the run's state: ids of the calls that were begun and put off, so that they have a step."""
_HANDLE: Final = "handle_deferred_tool_calls"
_ANSWERED: Final = "what became of the calls that an agent has put off"


def patch(module: ModuleType, patches: Patches) -> None:
    """Observe the handlers of a module of ``pydantic_ai.capabilities``.

    Raises:
        UnsupportedError: they are not as they are known here.
    """
    for name in ("HandleDeferredToolCalls", "Hooks"):
        owner = vars(module).get(name)
        if owner is not None and owner.__module__ == module.__name__ and _HANDLE in vars(owner):
            expect(owner, _HANDLE, ["self", "ctx", "requests"])
            patches.replace(owner, _HANDLE, _observed)


def _observed(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def handle(self: Any, ctx: Any, *, requests: Any) -> Any:
        scope = here()
        if scope is None or not _has_handler(self):
            return await original(self, ctx, requests=requests)
        made = framework.attempt(scope, _ANSWERED, lambda: _asked(scope, requests))
        if made is None:
            return await original(self, ctx, requests=requests)
        results = await acall(scope, made, lambda: original(self, ctx, requests=requests))
        if results is not None:
            framework.attempt(scope, _ANSWERED, lambda: decide(results, [*requests.approvals, *requests.calls], by="handler"))
        return results

    return handle


def _has_handler(capability: Any) -> bool:
    entries = getattr(capability, "_get", None)  # of Hooks, which may have none
    return entries is None or bool(entries(_HANDLE))


def _asked(scope: Scope, requests: Any) -> Call:
    wait_for(scope, requests)
    asked = {
        what: [{"id": call.tool_call_id, "tool": call.tool_name, "arguments": call.args_as_dict()} for call in getattr(requests, what)]
        for what in ("approvals", "calls")
    }
    return Call(kind="human", name=_HANDLE, input=codec.encode(asked))


def decide(results: Any, asked: Collection[Any], *, by: str) -> None:
    """Keep what was said of calls that were put off.

    Args:
        results: ``DeferredToolResults``.
        asked: the calls, as the model asked for them.
        by: who said it, where the results name nobody.
    """
    known = {call.tool_call_id: call for call in asked}
    who = getattr(results, "answered_by", {})
    for call_id, said in results.approvals.items():
        call = known.get(call_id)
        changed = getattr(said, "override_args", None)
        record_decision(
            "unknown" if call is None else call.tool_name,
            "allow" if said is True or type(said).__name__ == "ToolApproved" else "deny",
            by=who.get(call_id, by),
            reason=getattr(said, "message", None),
            arguments=changed if changed is not None or call is None else call.args_as_dict(),
            call_id=call_id,
        )


def wait_for(scope: Scope, requests: Any) -> None:
    """Keep which calls are left open: those that want an approval, and those that another system is to answer."""
    for call in getattr(requests, "approvals", ()):
        record_decision(call.tool_name, "require_approval", by=FRAMEWORK, arguments=call.args_as_dict(), call_id=call.tool_call_id)
    begun: set[str] = set() if scope.run is None else scope.run.state.setdefault(PUT_OFF, set())
    for call in requests.calls if hasattr(requests, "calls") else requests.tool_calls:
        if call.tool_call_id not in begun:
            begun.add(call.tool_call_id)
            framework.not_made(scope, Offered(name=call.tool_name), call.args_as_dict(), "deferred", layer=LAYER, call_id=call.tool_call_id)
