"""Attaching a recorder to every tracer and logger provider of the application, those that exist and those that are made later.

The global provider is never set: that can be done once only, and is the application's to do.
"""

import functools
import logging
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

import wrapt

from spanreplay.exporter.recorder import Recorder

_log: Final = logging.getLogger("spanreplay")
_lock = threading.RLock()
_recorder: Recorder | None = None


@dataclass(slots=True)
class _Kind:
    """One kind of provider: where the SDK has it, and where it keeps its processors.

    The SDK can add a processor but not take one out again, and a subclass may not be ready for its own ``add_…`` method while it is being
    made; so the provider's list of processors is used itself, guarded by what is looked up before.
    """

    module: str
    provider: str
    multi: str
    """Attribute of a provider: what hands spans or log records to all processors."""
    processors: str
    """Attribute of that: a tuple."""
    add: str
    api: str
    current: str
    """Variable of the API module ``api`` with the provider that the application has set."""
    setter: str
    """What the API's own function for setting it calls, wherever that one was imported to."""
    ask: str
    """Method of a provider that gives a tracer or a logger."""
    known: "weakref.WeakValueDictionary[int, Any]" = field(default_factory=weakref.WeakValueDictionary)
    """Providers made since the first attachment of this process, by ``id``: not every provider can be hashed."""
    hooked: bool = False
    patched: list[tuple[Any, str, Callable[..., Any], Callable[..., Any]]] = field(default_factory=list)

    def attach(self) -> None:
        module = sys.modules.get(self.module)
        if module is not None:
            self.patch(module)
        elif not self.hooked:
            self.hooked = True
            wrapt.register_post_import_hook(self.patch, self.module)
        for provider in (*self.known.values(), self.found()):
            self.take(provider)

    def patch(self, module: ModuleType) -> None:
        with _lock:
            if _recorder is None or self.patched:
                return
            owner: Any = getattr(module, self.provider)
            self.replace(owner, "__init__", self.taking)
            self.replace(owner, self.ask, self.asked)
            self.replace(sys.modules.get(self.api), self.setter, self.setting)

    def replace(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        original = getattr(owner, name, None)
        if original is not None:
            made = functools.wraps(original)(make(original))
            setattr(owner, name, made)
            self.patched.append((owner, name, original, made))

    def taking(self, original: Callable[..., None]) -> Callable[..., None]:
        """A provider is made."""

        def __init__(provider: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 — it stands in for one
            original(provider, *args, **kwargs)
            with _lock:
                self.take(provider)

        return __init__

    def asked(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A provider that was made before is used after all, global or not."""

        def ask(provider: Any, *args: Any, **kwargs: Any) -> Any:
            if self.known.get(id(provider)) is not provider:
                with _lock:
                    self.take(provider)
            return original(provider, *args, **kwargs)

        return ask

    def setting(self, original: Callable[..., None]) -> Callable[..., None]:
        """A provider becomes the global one. Tracers that were given out before it did may make spans of it without asking it again."""

        def set_provider(*args: Any, **kwargs: Any) -> None:
            original(*args, **kwargs)
            with _lock:
                self.take(self.found())

        return set_provider

    def found(self) -> object:
        """The provider that the application has set, if any; a proxy of its own is looked through."""
        api = sys.modules.get(self.api)
        provider = None if api is None else getattr(api, self.current, None)
        for _ in range(4):
            if provider is None or hasattr(provider, self.multi):
                break
            provider = getattr(provider, "provider", None)
        return provider

    def take(self, provider: object) -> None:
        recorder = _recorder
        if provider is None or recorder is None or not hasattr(provider, self.multi):
            return
        try:
            self.known[id(provider)] = provider
            if not self.has(provider, recorder):
                getattr(getattr(provider, self.multi), self.add)(recorder)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            recorder.failed("what one provider is told")

    def has(self, provider: object, recorder: Recorder) -> bool:
        processors = getattr(getattr(provider, self.multi, None), self.processors, ())
        return any(processor is recorder for processor in processors)

    def detach(self, recorder: Recorder) -> None:
        for provider in list(self.known.values()):
            try:
                multi = getattr(provider, self.multi, None)
                if multi is not None and self.has(provider, recorder):
                    with multi._lock:
                        setattr(multi, self.processors, tuple(p for p in getattr(multi, self.processors) if p is not recorder))
            except Exception:  # noqa: BLE001 — telemetry never breaks the agent
                _log.debug("spanreplay could not be taken out of a provider", exc_info=True)
        left = []
        for owner, name, original, made in reversed(self.patched):
            if getattr(owner, name, None) is made:
                setattr(owner, name, original)
            else:  # somebody else has patched on top since
                left.append((owner, name, original, made))
        self.patched[:] = reversed(left)


_TRACERS: Final = _Kind(
    module="opentelemetry.sdk.trace",
    provider="TracerProvider",
    multi="_active_span_processor",
    processors="_span_processors",
    add="add_span_processor",
    api="opentelemetry.trace",
    current="_TRACER_PROVIDER",
    setter="_set_tracer_provider",
    ask="get_tracer",
)
_LOGGERS: Final = _Kind(
    module="opentelemetry.sdk._logs._internal",
    provider="LoggerProvider",
    multi="_multi_log_record_processor",
    processors="_log_record_processors",
    add="add_log_record_processor",
    api="opentelemetry._logs._internal",
    current="_LOGGER_PROVIDER",
    setter="_set_logger_provider",
    ask="get_logger",
)
_KINDS: Final = (_TRACERS, _LOGGERS)


def attach(recorder: Recorder, provider: object = None) -> None:
    """Attach ``recorder`` everywhere until :func:`detach`.

    Args:
        recorder: the one that is told of every span and event.
        provider: a tracer provider that is not the global one and was made before; others are found without being named.
    """
    global _recorder  # noqa: PLW0603 — one recorder for the process
    with _lock:
        _recorder = recorder
        for kind in _KINDS:
            kind.attach()
        _TRACERS.take(provider)


def attach_global() -> None:
    """Look again for the global providers, for one that was set without being seen."""
    with _lock:
        for kind in _KINDS:
            kind.take(kind.found())


def detach() -> None:
    """Take the recorder out of every provider and the SDK back to what it was."""
    global _recorder
    with _lock:
        recorder, _recorder = _recorder, None
        if recorder is not None:
            for kind in _KINDS:
                kind.detach(recorder)


def attached() -> int:
    """How many living tracer providers tell the recorder of their spans."""
    with _lock:
        recorder = _recorder
        return 0 if recorder is None else sum(1 for provider in list(_TRACERS.known.values()) if _TRACERS.has(provider, recorder))


def after_fork() -> None:
    """In a forked child: another thread may have held the lock."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()
