"""What DSPy's agents tell their models of a tool that failed: with a traceback, whose lines are those of the code that ran.

spanreplay's own frames are left out, so that a model is told the same while it is recorded. In a replay the tool did not run: the text is
read from the record.
"""

import functools
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any, Final

from spanreplay.boundary.boundary import call, here
from spanreplay.boundary.call import Call
from spanreplay.content import codec
from spanreplay.instrumentation.framework import attempt
from spanreplay.instrumentation.hooks import expect
from spanreplay.instrumentation.patching import Patches

READ: Final = "dspy.error"
_OURS: Final = "spanreplay."


def patch(module: ModuleType, patches: Patches) -> None:
    """Observe ``format_error_for_lm`` of ``dspy.utils.exceptions``, or ``_fmt_exc`` of ``dspy.predict.react`` before 3.1.

    Raises:
        UnsupportedError: it is not as it is known here.
    """
    name, error = ("format_error_for_lm", "error") if module.__name__.endswith(".exceptions") else ("_fmt_exc", "err")
    if hasattr(module, name):
        expect(module, name, [error])
        patches.rebind(module, name, _observed)


def _observed(original: Callable[..., str]) -> Callable[..., str]:
    shows = original.__name__ == "_fmt_exc"

    @functools.wraps(original)
    def told(error: BaseException, **options: Any) -> str:
        if not (shows or options.get("traceback_frames")):
            return original(error, **options)
        scope = here()
        made = None if scope is None else attempt(scope, "what is told of an error", lambda: _call(error))
        text = functools.partial(_without_ours, error, lambda: original(error, **options))
        return text() if scope is None or made is None else call(scope, made, text)

    return told


def _call(error: BaseException) -> Call:
    return Call(kind="io", name=READ, input=codec.encode({"error": type(error).__qualname__, "message": str(error)}), effect="read")


def _without_ours(error: BaseException, text: Callable[[], str]) -> str:
    kept: list[tuple[BaseException, TracebackType | None]] = []
    one: BaseException | None = error
    while one is not None and all(one is not known for known, _ in kept):
        kept.append((one, one.__traceback__))
        one.__traceback__ = _theirs(one.__traceback__)
        one = one.__cause__ or one.__context__
    try:
        return text()
    finally:
        for known, trace in kept:
            known.__traceback__ = trace


def _theirs(trace: TracebackType | None) -> TracebackType | None:
    frames = []
    while trace is not None:
        if not str(trace.tb_frame.f_globals.get("__name__", "")).startswith(_OURS):
            frames.append(trace)
        trace = trace.tb_next
    made: TracebackType | None = None
    for one in reversed(frames):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made
