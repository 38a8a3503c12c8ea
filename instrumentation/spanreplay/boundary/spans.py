"""The OpenTelemetry side of a step: its span, where there is a tracer provider, and ids of our own where there is none."""

import os
import sys
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import ProxyTracerProvider, Span, SpanContext, SpanKind, TraceFlags, Tracer, TracerProvider

from spanreplay.semconv import attributes as names

if TYPE_CHECKING:
    from spanreplay.boundary.session import RunContext

_FIRST: Final = (
    names.GEN_AI_OPERATION_NAME,
    names.STEP_KIND,
    names.GEN_AI_TOOL_NAME,
    names.GEN_AI_REQUEST_MODEL,
    names.RUN_ID,
    names.GEN_AI_AGENT_NAME,
    names.STEP_OUTCOME,
    names.ERROR_TYPE,
    names.STEP_NAME,
    names.GEN_AI_PROVIDER_NAME,
    names.GEN_AI_RESPONSE_MODEL,
    names.GEN_AI_USAGE_INPUT_TOKENS,
    names.GEN_AI_USAGE_OUTPUT_TOKENS,
    names.GEN_AI_TOOL_CALL_ID,
    names.RUN_ROOT,
    names.STEP_PATH,
    names.STEP_SEQ_START,
    names.STEP_SEQ_END,
)
"""What a span with little room keeps, the most important first."""
_ATOMS: Final = frozenset({str, bool, int, float})
_known: Final[dict[type, bool]] = {}
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_tracer: tuple[TracerProvider, Tracer] | None = None
"""With its provider itself, not its id: a later provider may have the same one."""
_asked = False
"""Whether the API has said once that there is no provider, which is when it looks for the name of one among the environment variables."""


_ids: Final = Random()  # noqa: S311 — names, no secrets
"""Asking the system for each id costs more than all else of a place in a trace. No program seeds this one."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.seed)


def _current_tracer() -> Tracer:
    global _tracer  # noqa: PLW0603 — looking a tracer up costs as much as the rest of the step
    provider = trace.get_tracer_provider()
    if _tracer is None or _tracer[0] is not provider:
        _tracer = (provider, provider.get_tracer(names.SCOPE_NAME))
    return _tracer[1]


def _is_nobodys() -> bool:
    """Whether nobody has set a tracer provider: the spans of the API's own are nobody's."""
    global _asked  # noqa: PLW0603 — asking the API each time costs more than the rest of a place in a trace
    if _asked and getattr(trace, "_TRACER_PROVIDER", trace) is None:
        return True
    _asked = type(trace.get_tracer_provider()) is ProxyTracerProvider
    return _asked


def start_span(name: str, parent_context: Context, parent: SpanContext, *, client: bool, start_ns: int) -> Span | None:
    """A span of whatever tracer provider there is; ``None`` where there is none.

    Raises whatever the provider and its processors raise.
    """
    if _is_nobodys():
        return None
    kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
    span = _current_tracer().start_span(name, context=parent_context, kind=kind, start_time=start_ns)
    context = span.get_span_context()
    if not context.is_valid or context.span_id == parent.span_id:  # no SDK: the API hands back the parent
        return None
    return span


def put(span: Span, attributes: Mapping[str, Any], expected: int) -> int:
    """Set attributes on a span, no more than it has room for.

    Returns how many it has now if it had as many as ``expected`` before, which says that nobody else has set one; else -1.

    The SDK drops the oldest attribute where there is no room, which may be the user's, and logs a warning each time. So what is less
    important is left out here. At its start, while ``expected`` is 0, a span gets at most half of what it can hold, as others add to it
    and its end needs some.

    The SDK looks at each value on its own and copies it twice, which would be the largest part of what a step costs. Values that need
    no look are put straight into a span of the SDK.

    Raises whatever the span raises.
    """
    if _is_sdk_span(type(span)):
        held: Any = getattr(span, "_attributes", None)
        try:
            inner, most = held._dict, held.maxlen
            if isinstance(inner, dict):
                if most is not None:
                    attributes = _fitting(attributes, inner, most if expected else (most + 1) // 2)
                if held.max_value_len is None and _ATOMS.issuperset(map(type, attributes.values())):
                    with held._lock:
                        if not held._immutable:
                            before = len(inner)
                            inner.update(attributes)
                            return len(inner) if before == expected else -1
        except AttributeError:  # an SDK that is built in another way
            pass
    span.set_attributes(attributes)
    return -1


def _fitting(attributes: Mapping[str, Any], there: Mapping[str, Any], most: int) -> Mapping[str, Any]:
    """The most important of ``attributes``, as many as there is room for."""
    room = most - len(there)
    if len(attributes) <= room:
        return attributes
    ranked = [*(name for name in _FIRST if name in attributes), *(name for name in attributes if name not in _FIRST)]
    new = [name for name in ranked if name not in there][: max(room, 0)]
    return {name: attributes[name] for name in (*new, *(name for name in attributes if name in there))}


def _is_sdk_span(kind: type[Any]) -> bool:
    """Whether spans of this class are the SDK's, and nobody has changed how attributes are set on them."""
    known = _known.get(kind)
    if known is None:
        sdk = sys.modules.get("opentelemetry.sdk.trace")
        known = _known[kind] = sdk is not None and getattr(kind, "set_attributes", None) is _sdk_setter(sdk)
    return known


def _sdk_setter(sdk: Any) -> object:
    setter = getattr(getattr(sdk, "Span", None), "set_attributes", None)
    return setter if getattr(setter, "__module__", None) == sdk.__name__ else object()


def own_context(parent: SpanContext, run: "RunContext | None") -> SpanContext:
    """Ids of our own, in the trace around us, else in the trace of the run.

    A span that another provider makes below must not be lost to its exporters because of us: sampled, unless somebody decided otherwise.
    """
    if parent.is_valid:
        trace_id = parent.trace_id
    else:
        state = run.state if run is not None else {}
        trace_id = state.get("trace_id") or state.setdefault("trace_id", _ids.getrandbits(128) or 1)
    return SpanContext(trace_id, _ids.getrandbits(64) or 1, False, parent.trace_flags if parent.is_valid else _SAMPLED)
