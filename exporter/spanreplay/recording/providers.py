"""Attaching a recorder to every tracer provider of the application, those that exist and those that are made later.

The global provider is never set: that can be done once only, and is the application's to do.
"""

import functools
import logging
import sys
import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

import wrapt

from spanreplay.exporter.recorder import Recorder

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

_log: Final = logging.getLogger("spanreplay")
_SDK: Final = "opentelemetry.sdk.trace"

_lock = threading.RLock()
_known: "weakref.WeakSet[Any]" = weakref.WeakSet()
"""Providers made since the first attachment of this process."""
_recorder: Recorder | None = None
_hooked = False
_patched: tuple[Any, Callable[..., None], Callable[..., None]] | None = None


def attach(recorder: Recorder, provider: object = None) -> None:
    """Attach ``recorder`` everywhere until :func:`detach`.

    Args:
        recorder: the one that is told of every span.
        provider: a provider that is not the global one and was made before; found by itself otherwise.
    """
    global _recorder, _hooked  # noqa: PLW0603 — one recorder for the process
    with _lock:
        _recorder = recorder
        module = sys.modules.get(_SDK)
        if module is not None:
            _patch(module)
        elif not _hooked:
            _hooked = True
            wrapt.register_post_import_hook(_patch, _SDK)
        for found in (*_known, _global(), provider):
            _add(found)


def attach_global() -> None:
    """Look again for the global provider, for one that was set without being seen."""
    with _lock:
        _add(_global())


def detach() -> None:
    """Take the recorder out of every provider and the SDK back to what it was."""
    global _recorder, _patched  # noqa: PLW0603
    with _lock:
        recorder, _recorder = _recorder, None
        if recorder is not None:
            for provider in list(_known):
                _remove(provider, recorder)
        if _patched is not None:
            owner, original, made = _patched
            if owner.__init__ is made:
                owner.__init__ = original
                _patched = None


def attached() -> int:
    """How many living providers tell the recorder of their spans."""
    with _lock:
        recorder = _recorder
        return 0 if recorder is None else sum(1 for provider in list(_known) if _has(provider, recorder))


def after_fork() -> None:
    """In a forked child: another thread may have held the lock."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


def _patch(module: ModuleType) -> None:
    global _patched  # noqa: PLW0603
    with _lock:
        if _recorder is None or _patched is not None:
            return
        owner: type[TracerProvider] = module.TracerProvider
        original = owner.__init__

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 — it stands in for one
            original(self, *args, **kwargs)
            with _lock:
                _add(self)

        owner.__init__ = __init__  # type: ignore[method-assign]
        _patched = (owner, original, __init__)


def _global() -> object:
    """The provider that the application has set, if any; a proxy of its own is looked through."""
    api = sys.modules.get("opentelemetry.trace")
    provider = None if api is None else getattr(api, "_TRACER_PROVIDER", None)
    for _ in range(4):
        if provider is None or hasattr(provider, "_active_span_processor"):
            break
        provider = getattr(provider, "provider", None)
    return provider


def _add(provider: object) -> None:
    recorder = _recorder
    if provider is None or recorder is None or not hasattr(provider, "_active_span_processor"):
        return
    try:
        _known.add(provider)
        if not _has(provider, recorder):
            # The base class's method: a subclass may not be ready for its own while it is being made.
            sdk = cast("TracerProvider", provider)
            sdk._active_span_processor.add_span_processor(cast("SpanProcessor", recorder))
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        recorder.failed("the spans of one tracer provider")


def _has(provider: object, recorder: Recorder) -> bool:
    processors = getattr(getattr(provider, "_active_span_processor", None), "_span_processors", ())
    return any(processor is recorder for processor in processors)


def _remove(provider: object, recorder: Recorder) -> None:
    try:
        multi = getattr(provider, "_active_span_processor", None)
        if multi is not None and _has(provider, recorder):
            with multi._lock:  # the SDK has no way to take a processor out
                multi._span_processors = tuple(p for p in multi._span_processors if p is not recorder)
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        _log.debug("spanreplay could not be taken out of a tracer provider", exc_info=True)
