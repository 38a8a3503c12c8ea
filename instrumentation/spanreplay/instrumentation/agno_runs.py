"""Agno: a run of an agent, a team or a workflow, as it is asked for, as it is read, and as it waits for people."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, closing, contextmanager, nullcontext
from importlib import metadata
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from spanreplay.boundary.boundary import call, here
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered, attempt
from spanreplay.instrumentation.manual import AgentRun, agent_run, record_decision

Kind: TypeAlias = Literal["Agent", "Team", "Workflow"]
Outcome: TypeAlias = Literal["allow", "deny"]

NAME: Final = "agno"
LAYER: Final = "agno.FunctionCall"
_EVENTS: Final[Mapping[Kind, tuple[str | None, str, str]]] = {
    "Agent": ("RunContent", "RunCompleted", "RunPaused"),
    "Team": ("TeamRunContent", "TeamRunCompleted", "TeamRunPaused"),
    "Workflow": (None, "WorkflowCompleted", "WorkflowPaused"),
}
"""Of a stream: a part of the answer, the whole answer, and that people are asked."""


@functools.cache
def _version() -> str:
    return f"agno {metadata.version('agno')}"


class ObservedRun:
    """A run of an agent, a team or a workflow.

    Args:
        kind: which of them.
        agent: the agent, team or workflow.
        asked: what it is given: its input, or the run that it goes on with.
        options: what it is given besides, by name.
    """

    def __init__(self, kind: Kind, agent: Any, asked: Any, options: Mapping[str, Any]) -> None:
        self._kind: Kind = kind
        self._name: str = agent.name or type(agent).__name__.lower()
        self._told = [one for one in _asked_of_people(asked) if one.confirmed is not None]
        self._asked = {"continued": [[one.name, one.confirmed] for one in self._told]} if hasattr(asked, "run_id") else asked
        self._session = options.get("session_id") or getattr(agent, "session_id", None)
        named = {
            key: value for key in ("instructions", "description", "role") if isinstance(value := getattr(agent, key, None), str | list)
        }
        model = getattr(getattr(agent, "model", None), "id", None)
        self._definition = {"framework": _version(), **named} | ({"model": model} if isinstance(model, str) else {})
        if kind == "Workflow":
            self._definition["steps"] = _steps(agent.steps)
        self._parts: list[str] = []
        self._output: Any = None
        self._waits: Any = None

    def _begin(self) -> AgentRun:
        run = agent_run(self._name, input=self._asked, session=self._session, definition=self._definition)
        run.begin()
        with run.body():
            self._look(self._tell)
        return run

    def _ask(self, paused: Any) -> None:
        for one in _asked_of_people(paused):
            if one.confirmed is None:
                record_decision(one.name, "require_approval", by=NAME, arguments=one.arguments, call_id=one.call_id)

    def _tell(self) -> None:
        for one in self._told:
            outcome: Outcome = "allow" if one.confirmed else "deny"
            record_decision(one.name, outcome, by="caller", arguments=one.arguments, call_id=one.call_id)
            if not one.confirmed and one.call_id is not None:
                _reject(one)

    def _seen(self, event: Any) -> None:
        name, content = getattr(event, "event", None), getattr(event, "content", None)
        said, completed, paused = _EVENTS[self._kind]
        if name == said and isinstance(content, str):
            self._parts.append(content)
        elif name == completed:
            self._output = content
        elif name == paused:
            self._waits = event

    def _end(self, run: AgentRun, response: Any) -> None:
        run.output = "".join(self._parts) if response is None and self._output is None else getattr(response, "content", self._output)
        waits = response if getattr(response, "is_paused", False) else self._waits
        if waits is not None:
            run.outcome = "interrupted"
            with run.body():
                self._look(lambda: self._ask(waits))
        run.end()

    def _look(self, what: Callable[[], object]) -> None:
        scope = here()
        if scope is not None:
            attempt(scope, "what a person is asked or has said", what)

    def now(self, invoke: Callable[[], Any]) -> Any:
        """Run it, or begin to, where it answers with a stream."""
        run = self._begin()
        with _failing(run), run.body():
            response = invoke()
        if hasattr(response, "__next__"):
            return self._stream(run, response)
        self._end(run, response)
        return response

    async def awaited(self, running: Any) -> Any:
        """Run it to its end."""
        run = self._begin()
        with _failing(run), run.body():
            response = await running
        if hasattr(response, "__anext__"):
            return self.astream(response, run)
        self._end(run, response)
        return response

    def _stream(self, run: AgentRun, events: Iterator[Any]) -> Iterator[Any]:
        with _closing(events):
            with self._read(run) as last:
                while True:
                    with run.body():
                        event = next(events, _OVER)
                    if self._is_last(event, last):
                        break
                    yield event
            yield from last
            yield from events

    async def astream(self, events: AsyncIterator[Any], run: AgentRun | None = None) -> AsyncIterator[Any]:
        """Run it as its stream is read.

        Args:
            events: the stream.
            run: where it has begun already.
        """
        run = self._begin() if run is None else run
        async with _aclosing(events):
            with self._read(run) as last:
                while True:
                    with run.body():
                        event = await anext(events, _OVER)
                    if self._is_last(event, last):
                        break
                    yield event
            for event in last:
                yield event
            async for event in events:
                yield event

    @contextmanager
    def _read(self, run: AgentRun) -> Iterator[list[Any]]:
        """A stream is read in the block; the run ends with the block, before the last event of the stream is handed over."""
        last: list[Any] = []
        with _failing(run):
            yield last
        self._end(run, last[0] if last else None)

    def _is_last(self, event: Any, last: list[Any]) -> bool:
        if event is _OVER:
            return True
        if _is_whole(event):
            last.append(event)
            return True
        self._seen(event)
        return False


@contextmanager
def _failing(run: AgentRun) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        run.end(error)
        raise


def _closing(events: Any) -> AbstractContextManager[object]:
    return closing(events) if hasattr(events, "close") else nullcontext()


def _aclosing(events: Any) -> AbstractAsyncContextManager[object]:
    return aclosing(events) if hasattr(events, "aclose") else nullcontext()


def _is_whole(event: Any) -> bool:
    """Is it the whole answer, which a workflow and a team ask of an agent as the last of its stream, to read no further?"""
    return not hasattr(event, "event") and hasattr(event, "run_id") and hasattr(event, "content")


class _Question(NamedTuple):
    """What a person is asked: may a tool be called, may a step of a workflow be taken."""

    name: str
    arguments: Mapping[str, Any]
    call_id: str | None
    """Only of a tool."""
    confirmed: bool | None
    """``None``: not answered yet."""


def _asked_of_people(run: Any) -> list[_Question]:
    tools = [tool for tool in getattr(run, "tools", None) or () if tool.requires_confirmation or tool.confirmed is not None]
    last = (getattr(run, "step_requirements", None) or ())[-1:]  # those before it are history
    steps = [step for step in last if step.requires_confirmation]
    return [
        *(_Question(tool.tool_name, tool.tool_args or {}, tool.tool_call_id, tool.confirmed) for tool in tools),
        *(_Question(step.step_name or step.step_id, {}, None, step.confirmed) for step in steps),
    ]


def _reject(asked: _Question) -> None:
    scope = here()
    made = None
    if scope is not None:
        offered = Offered(name=asked.name)
        made = framework.tool_call(scope, offered, asked.arguments, layer=LAYER, call_id=asked.call_id, ending=lambda _: "rejected")
    if scope is not None and made is not None:
        call(scope, made, lambda: None)


def _steps(steps: Any) -> list[str]:
    listed = steps if isinstance(steps, list | tuple) else [steps]
    return [str(getattr(step, "name", None) or getattr(step, "__name__", None) or type(step).__name__) for step in listed]


_OVER: Final = object()
