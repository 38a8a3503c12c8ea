"""Models that a framework calls without HTTP: functions, models in this process. Each call is a step, seen at the framework's own seam.

An adapter says what is asked (:class:`Asked`) and how to read what was said; a replay gives the framework's own objects back.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from spanreplay.boundary.asked import ask_for
from spanreplay.boundary.boundary import agive, begin, give
from spanreplay.boundary.call import AttributeValue, Call
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json
from spanreplay.semconv import attributes as names

T = TypeVar("T")

PROVIDER: Final = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a model is asked.

    Attributes:
        model: its name.
        messages: as ``gen_ai.input.messages``, without what differs from run to run (times, ids that the framework makes up).
        system: as ``gen_ai.system_instructions``.
        tools: as ``gen_ai.tool.definitions``.
        settings: temperature and the like.
    """

    model: str
    messages: Sequence[Mapping[str, object]]
    system: Sequence[Mapping[str, object]] = ()
    tools: Sequence[Mapping[str, object]] = ()
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a model answered.

    Attributes:
        parts: of the one message, as in ``gen_ai.output.messages``.
        input_tokens: of the request, where they were counted.
        output_tokens: of the answer.
    """

    parts: Sequence[Mapping[str, Any]]
    input_tokens: int | None = None
    output_tokens: int | None = None


def _call(asked: Asked) -> Call:
    shown: dict[str, AttributeValue] = {
        names.GEN_AI_PROVIDER_NAME: PROVIDER,
        names.GEN_AI_REQUEST_MODEL: asked.model,
        names.GEN_AI_INPUT_MESSAGES: canonical_json(list(asked.messages)),
    }
    if asked.system:
        shown[names.GEN_AI_SYSTEM_INSTRUCTIONS] = canonical_json(list(asked.system))
    if asked.tools:
        shown[names.GEN_AI_TOOL_DEFINITIONS] = canonical_json(list(asked.tools))
    whole: dict[str, Any] = {"messages": asked.messages, "system": asked.system, "tools": asked.tools, "settings": asked.settings}
    plain = {name: list(value) if isinstance(value, tuple | list) else dict(value) for name, value in whole.items() if value}
    return Call(kind="model_call", name=asked.model, input=codec.encode(plain), attributes=shown)


def _started(scope: Scope, make: Callable[[], Asked]) -> Step | None:
    try:
        call = _call(make())
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed("what a model is asked")
        return None
    return begin(scope, call)


def _view(step: Step, value: Any, read: Callable[[Any], Said]) -> dict[str, AttributeValue]:
    """What an answer shows of itself; the calls of tools that it asks for are noted."""
    try:
        said = read(value)
        calls = [part for part in said.parts if part.get("type") == "tool_call"]
        ask_for(step, [(part.get("id"), str(part.get("name")), part.get("arguments")) for part in calls])
        message = {"role": "assistant", "parts": list(said.parts), "finish_reason": "tool_call" if calls else "stop"}
        counted = {names.GEN_AI_USAGE_INPUT_TOKENS: said.input_tokens, names.GEN_AI_USAGE_OUTPUT_TOKENS: said.output_tokens}
        return {
            names.GEN_AI_OUTPUT_MESSAGES: canonical_json([message]),
            **{name: count for name, count in counted.items() if count is not None},
        }
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        step.session.failed(f"what {step.call.name} said")
        return {}


def _given(step: Step, value: Any, read: Callable[[Any], Said]) -> Any:
    """What the record gave in place of the model's answer."""
    _view(step, value, read)
    return value


@contextmanager
def _asking(step: Step) -> Iterator[None]:
    """The model is asked inside the step, which ends with what is raised there."""
    try:
        with step.body():
            yield
    except BaseException as error:
        step.fail(error)
        raise


@contextmanager
def _handing_on(step: Step, read: Callable[[Sequence[Any]], Said]) -> Iterator[list[Any]]:
    """The pieces handed on so far, to be added to: however that ends, the step ends with them."""
    pieces: list[Any] = []
    try:
        yield pieces
    except GeneratorExit:
        step.end("abandoned", result=step.encoded(pieces))
        raise
    except BaseException as error:
        step.fail(error)
        raise
    step.succeed(pieces, attributes=_view(step, pieces, read))


def generate(
    scope: Scope, ask: Callable[[], Asked], invoke: Callable[[], T], read: Callable[[T], Said], keep: Callable[[T], object] = lambda v: v
) -> T:
    """One answer.

    Args:
        scope: where it is asked for.
        ask: makes what is asked.
        invoke: asks the model.
        read: the answer's messages.
        keep: the answer as it is recorded, for example without the model's own raw output.
    """
    step = _started(scope, ask)
    if step is None:
        return invoke()
    answer = step.ask()
    if answer is not None:
        return cast("T", _given(step, give(step, answer), read))
    with _asking(step):
        value = invoke()
    step.succeed(keep(value), attributes=_view(step, value, read))
    return value


async def agenerate(scope: Scope, ask: Callable[[], Asked], invoke: Callable[[], Awaitable[T]], read: Callable[[T], Said]) -> T:
    """As :func:`generate`, for an asynchronous model."""
    step = _started(scope, ask)
    if step is None:
        return await invoke()
    answer = step.ask()
    if answer is not None:
        return cast("T", _given(step, await agive(step, answer), read))
    with _asking(step):
        value = await invoke()
    step.succeed(value, attributes=_view(step, value, read))
    return value


def generate_stream(
    scope: Scope, ask: Callable[[], Asked], invoke: Callable[[], Iterator[T]], read: Callable[[Sequence[T]], Said]
) -> Generator[T]:
    """An answer in pieces; ``read`` is given all of them."""
    step = _started(scope, ask)
    if step is None:
        yield from invoke()
        return
    answer = step.ask()
    if answer is not None:
        yield from _given(step, give(step, answer) or [], read)
        return
    with _handing_on(step, read) as pieces:
        source = iter(invoke())
        while True:
            try:
                with step.body():
                    piece = next(source)
            except StopIteration:
                break
            pieces.append(piece)
            yield piece


async def agenerate_stream(
    scope: Scope, ask: Callable[[], Asked], invoke: Callable[[], AsyncIterator[T]], read: Callable[[Sequence[T]], Said]
) -> AsyncGenerator[T]:
    """As :func:`generate_stream`, for an asynchronous model."""
    step = _started(scope, ask)
    if step is None:
        async for piece in invoke():
            yield piece
        return
    answer = step.ask()
    if answer is not None:
        for piece in _given(step, await agive(step, answer) or [], read):
            yield piece
        return
    with _handing_on(step, read) as pieces:
        source = aiter(invoke())
        while True:
            try:
                with step.body():
                    piece = await anext(source)
            except StopAsyncIteration:
                break
            pieces.append(piece)
            yield piece
