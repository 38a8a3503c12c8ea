"""One tool call, one step, however many layers see it: a framework over ``@tool``, MCP under a framework."""

from typing import TYPE_CHECKING, Final

from spanreplay.boundary.scope import Scope

if TYPE_CHECKING:
    from spanreplay.boundary.step import Step

_STATE: Final = "layers"
_OPEN: Final = "layers.open"
_JOINTS: Final = "_.-/:"


def is_inner_layer(scope: Scope, name: str, layer: str) -> bool:
    """Whether a tool call made here is the body of the step around it, seen by another layer; it then goes straight through.

    Each layer passes once in a step's body, so a tool that calls itself still makes steps. The name may be the end of the step's:
    frameworks put a server's name in front.

    Args:
        scope: where the call is made.
        name: name of the tool as this layer knows it.
        layer: the seam that sees it, such as ``@tool``.
    """
    step = scope.step
    if step is None or step.call.kind != "tool_call" or step.call.layer == layer:
        return False
    outer, name = step.call.name, step.session.name(name)
    if outer != name and not (outer.endswith(name) and outer[-len(name) - 1] in _JOINTS):
        return False
    if step.inner.memo.get(_OPEN):
        return False
    met = step.inner.memo.setdefault(_STATE, set())
    if not isinstance(met, set) or layer in met:
        return False
    met.add(layer)
    return True


def leave_to_inner_layers(step: "Step") -> None:
    """Let the layers below make steps of their own of a tool call that is passed through.

    Args:
        step: the call as the outer layer sees it.
    """
    step.inner.memo[_OPEN] = True
