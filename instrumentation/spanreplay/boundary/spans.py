"""The OpenTelemetry side of a step: its span, where there is a tracer provider, and ids of our own where there is none."""

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, SpanKind, TraceFlags, Tracer, TracerProvider

from spanreplay.semconv import attributes as names

if TYPE_CHECKING:
    from spanreplay.boundary.session import RunContext

_ATOMS: Final = frozenset({str, bool, int, float})
_known: Final[dict[type, bool]] = {}
_tracer: tuple[TracerProvider, Tracer] | None = None
"""With its provider itself, not its id: a later provider may have the same one."""


def _current_tracer() -> Tracer:
    global _tracer  # noqa: PLW0603 — looking a tracer up costs as much as the rest of the step
    provider = trace.get_tracer_provider()
    if _tracer is None or _tracer[0] is not provider:
        _tracer = (provider, provider.get_tracer(names.SCOPE_NAME))
    return _tracer[1]


def start_span(name: str, parent_context: Context, parent: SpanContext, *, client: bool, start_ns: int) -> Span | None:
    """A span of whatever tracer provider there is; ``None`` where there is none.

    Raises whatever the provider and its processors raise.
    """
    kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
    span = _current_tracer().start_span(name, context=parent_context, kind=kind, start_time=start_ns)
    context = span.get_span_context()
    if not context.is_valid or context.span_id == parent.span_id:  # no SDK: the API hands back the parent
        return None
    return span


def put(span: Span, attributes: Mapping[str, Any], expected: int) -> int:
    """Set attributes on a span.

    Returns how many it has now if it had as many as ``expected`` before, which says that nobody else has set one; else -1.

    The SDK looks at each value on its own and copies it twice, which would be the largest part of what a step costs. Values that need
    no look are put straight into a span of the SDK that has room for all of them.

    Raises whatever the span raises.
    """
    if _ATOMS.issuperset(map(type, attributes.values())) and _is_sdk_span(type(span)):
        held: Any = getattr(span, "_attributes", None)
        try:
            inner, most = held._dict, held.maxlen
            if isinstance(inner, dict) and held.max_value_len is None and (most is None or len(inner) + len(attributes) <= most):
                with held._lock:
                    if not held._immutable:
                        before = len(inner)
                        inner.update(attributes)
                        return len(inner) if before == expected else -1
        except AttributeError:  # an SDK that is built in another way
            pass
    span.set_attributes(attributes)
    return -1


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
        trace_id = state.setdefault("trace_id", int.from_bytes(os.urandom(16), "big") or 1)
    return SpanContext(
        trace_id=trace_id,
        span_id=int.from_bytes(os.urandom(8), "big") or 1,
        is_remote=False,
        trace_flags=parent.trace_flags if parent.is_valid else TraceFlags(TraceFlags.SAMPLED),
    )
