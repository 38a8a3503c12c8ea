"""LangGraph: its agents. Their tools are LangChain's, see :mod:`spanreplay.instrumentation.adapters.langchain`.

A compiled graph that is run (``invoke``, ``stream`` and their asynchronous forms, which all others go through) is an agent: the outermost
one, one that has a name of its own, and one that a tool runs. Nodes and sub-graphs without a name are parts of it.
``create_agent`` and ``create_react_agent`` say what makes an agent what it is.
"""

import functools
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

from spanreplay.boundary.boundary import here
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.agent_streams import agent_astream, agent_stream
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.langchain_values import is_a, shown
from spanreplay.instrumentation.langgraph_store import patch_batched, patch_store
from spanreplay.instrumentation.manual import AgentRun, agent_run
from spanreplay.instrumentation.patching import Patches

NAME: Final = "langgraph"
_UNNAMED: Final = "LangGraph"
_MODEL: Final = "langchain_core.language_models.base:BaseLanguageModel"

_definitions: Final[WeakKeyDictionary[Any, dict[str, object]]] = WeakKeyDictionary()
"""Of the builders of graphs, which copies of a graph share."""
_inside: ContextVar[list[Any] | None] = ContextVar("spanreplay.langgraph", default=None)
"""The graph whose own call of ``stream`` comes next."""


def _patch_graphs(module: ModuleType, patches: Patches) -> None:
    for name, made in (
        ("invoke", _observed_invoke),
        ("ainvoke", _observed_ainvoke),
        ("stream", _observed_stream),
        ("astream", _observed_astream),
    ):
        expect(module.Pregel, name, ["self", "input", "config"])
        patches.replace(module.Pregel, name, made)


def _patch_create_agent(module: ModuleType, patches: Patches) -> None:
    expect(module, "create_agent", ["model", "tools"])
    patches.rebind(module, "create_agent", _observed_making)


def _patch_create_react_agent(module: ModuleType, patches: Patches) -> None:
    expect(module, "create_react_agent", ["model", "tools"])
    patches.rebind(module, "create_react_agent", _observed_making)


def _patch_batched(module: ModuleType, patches: Patches) -> None:
    patch_batched(sys.modules["langgraph.store.base"], module, patches)


_hooks: Final = Hooks(
    NAME,
    {
        "langgraph.store.base": patch_store,
        "langgraph.store.base.batch": _patch_batched,
        "langgraph.pregel.main": _patch_graphs,
        "langchain.agents.factory": _patch_create_agent,
        "langgraph.prebuilt.chat_agent_executor": _patch_create_react_agent,
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


# ---- runs -------------------------------------------------------------------------------------------------------


def _observed_invoke(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def invoke(self: Any, input: Any, config: Any = None, **options: Any) -> Any:  # noqa: A002 — the framework's name
        run = _run(self, input, config)
        if run is None:
            return original(self, input, config, **options)
        with run, _own_stream(self):
            given = original(self, input, config, **options)
            run.output = _told(given)
            return given

    return invoke


def _observed_ainvoke(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def ainvoke(self: Any, input: Any, config: Any = None, **options: Any) -> Any:  # noqa: A002
        run = _run(self, input, config)
        if run is None:
            return await original(self, input, config, **options)
        async with run:
            with _own_stream(self):
                given = await original(self, input, config, **options)
            run.output = _told(given)
            return given

    return ainvoke


def _observed_stream(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def stream(self: Any, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:  # noqa: A002
        run = _run(self, input, config)
        if run is None:
            return original(self, input, config, **options)  # type: ignore[no-any-return]
        last = _Last(run, options.get("stream_mode") or self.stream_mode, namespaces=bool(options.get("subgraphs")))
        return agent_stream(run, lambda: original(self, input, config, **options), last.seen, last.finished)

    return stream


def _observed_astream(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def astream(self: Any, input: Any, config: Any = None, **options: Any) -> AsyncIterator[Any]:  # noqa: A002
        run = _run(self, input, config)
        if run is None:
            return original(self, input, config, **options)  # type: ignore[no-any-return]
        last = _Last(run, options.get("stream_mode") or self.stream_mode, namespaces=bool(options.get("subgraphs")))
        return agent_astream(run, lambda: original(self, input, config, **options), last.seen, last.finished)

    return astream


@contextmanager
def _own_stream(graph: Any) -> Iterator[None]:
    token = _inside.set([graph])
    try:
        yield
    finally:
        _inside.reset(token)


def _run(graph: Any, asked: Any, config: Any) -> AgentRun | None:
    """The run that a call of a graph is; ``None`` where it is a part of one."""
    scope = here()
    if scope is None:
        return None
    own = _inside.get()
    if own and own[0] is graph:
        own.clear()
        return None
    try:
        name = str(graph.name or _UNNAMED)
        if not _is_agent(scope, name):
            return None
        thread = ((config or {}).get("configurable") or {}).get("thread_id")
        builder = getattr(graph, "builder", None)
        definition = None if builder is None else _definitions.get(builder)
        return agent_run(
            name,
            input=_told(asked),
            session=None if thread is None else str(thread),
            definition=definition or {"nodes": [node for node in graph.nodes if node != "__start__"]},
        )
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed("a graph")
        return None


def _is_agent(scope: Scope, name: str) -> bool:
    if scope.run is None or scope.run.fallback or name != _UNNAMED:
        return True
    return scope.step is not None and scope.step.call.kind == "tool_call"


def _told(value: Any) -> Any:
    try:
        return shown(value)
    except Exception:  # noqa: BLE001 — a state of any kind; the codec takes it as it is
        return value


class _Last:
    """The last state, or what comes nearest to it, of what a stream gives: ``(namespace, mode, data)``, less what was not asked for."""

    def __init__(self, run: AgentRun, mode: Any, *, namespaces: bool) -> None:
        self._run = run
        self._mode = mode if isinstance(mode, str) else None
        self._namespaces = namespaces
        self._last: dict[str, Any] = {}

    def seen(self, item: Any) -> None:
        """Take an item."""
        place: Any = ()
        if isinstance(item, dict) and {"type", "ns", "data"} <= item.keys():
            place, mode, data = item["ns"], item["type"], item["data"]
        else:
            if self._namespaces:
                place, item = item[0], item[1:] if len(item) > 2 else item[1]
            mode, data = (self._mode, item) if self._mode is not None else item
        if place:
            return
        if mode == "messages":  # (part of a message, where it comes from)
            part, before = data[0], self._last.get(mode)
            same = before is not None and before.id == part.id and "Chunk" in type(part).__name__
            data = before + part if same else part
        self._last[mode] = data

    def finished(self) -> None:
        """Give the run its output."""
        for mode in ("values", "updates", "messages"):
            if mode in self._last:
                self._run.output = _told(self._last[mode])
                return


# ---- definitions ------------------------------------------------------------------------------------------------


def _observed_making(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def create(model: Any, tools: Any = None, **options: Any) -> Any:
        graph = original(model, tools, **options)
        try:
            _definitions[graph.builder] = _definition(model, tools, options)
        except Exception as error:  # noqa: BLE001 — a definition that cannot be told is no reason to have no agent
            scope = here()
            if scope is not None:
                scope.session.failed(f"the definition of an agent ({type(error).__name__})")
        return graph

    return create


def _definition(model: Any, tools: Any, options: dict[str, Any]) -> dict[str, object]:
    instructions = next((options[name] for name in ("system_prompt", "prompt", "state_modifier") if options.get(name) is not None), None)
    listed = tools if isinstance(tools, list | tuple) else list(getattr(tools, "tools_by_name", {}))
    told = {
        "instructions": shown(instructions) if isinstance(instructions, str) else getattr(instructions, "content", _named(instructions)),
        "model": _settings(model),
        "tools": [_named(tool) for tool in listed],
        "middleware": [_named(one) for one in options.get("middleware") or ()],
        "response_format": _named(options.get("response_format")),
    }
    return {name: value for name, value in told.items() if value}


def _settings(model: Any) -> object:
    """Provider, name, temperature and so on, as the model tells LangSmith."""
    bound = getattr(model, "bound", model)
    if not is_a(type(bound), _MODEL):
        return model if isinstance(model, str) else _named(model)
    told = {name.removeprefix("ls_"): value for name, value in bound._get_ls_params().items() if value is not None}
    return {**told, "arguments": sorted(model.kwargs)} if bound is not model else told


def _named(thing: Any) -> str | None:
    if thing is None or isinstance(thing, str):
        return thing
    if isinstance(thing, dict):
        return str(thing.get("name") or thing.get("type") or thing.get("title"))
    return str(getattr(thing, "name", None) or getattr(thing, "__name__", None) or type(thing).__name__)
