"""The manual API: runs, prompts, decisions, declared reads and named scopes.

Everything here works, and does nothing, while spanreplay is off.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import Token
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeAlias, TypeVar, cast

from spanreplay.boundary import boundary
from spanreplay.boundary import scope as scopes
from spanreplay.boundary.body import Body
from spanreplay.boundary.call import Call, OutcomeName
from spanreplay.boundary.scope import Scope, in_force
from spanreplay.boundary.step import Step
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json, digest
from spanreplay.instrumentation._remembered import remembered
from spanreplay.instrumentation.skills import still_loaded
from spanreplay.semconv import attributes as names

P = ParamSpec("P")
T = TypeVar("T")

Decision: TypeAlias = Literal["allow", "deny", "require_approval"]


class AgentRun:
    """A run in progress: ``with agent_run("refunds") as run:`` or ``async with``. Set :attr:`output` before it ends.

    Attributes:
        output: what the run produced; kept with the run and compared by a replay.
        outcome: how it ended, where it raised nothing and yet is not over: ``interrupted`` while a person is asked.
    """

    def __init__(self, call: Call | None, *, definition: str | None) -> None:
        self.output: Any = None
        self.outcome: OutcomeName | None = None
        self._call = call
        self._definition = definition
        self._step: Step | None = None
        self._body: Body

    @property
    def run_id(self) -> str | None:
        """Id of the run, 32 hex digits; ``None`` while spanreplay is off."""
        return None if self._step is None or self._step.run is None else self._step.run.run_id

    def __enter__(self) -> Self:
        """Begin the run."""
        self.begin()
        if self._step is not None:
            self._body = self._step.body()
            self._body.__enter__()
        return self

    def begin(self) -> None:
        """Begin the run without entering it, as an agent that answers with a stream must: what its reader does is not the run's."""
        scope = boundary.here()
        if scope is None or self._call is None:
            return
        step = boundary.begin(scope, self._call, self._extra(scope, self._call))
        if step is not None:
            step.ask()
            self._step = step

    def body(self) -> AbstractContextManager[object]:
        """A context manager: what is called inside belongs to the run that :meth:`begin` began."""
        return nullcontext() if self._step is None else self._step.body()

    def _extra(self, scope: Scope, call: Call) -> dict[str, Any]:
        extra: dict[str, Any] = {}
        try:
            if call.input is not None:
                extra[names.RUN_INPUT] = scope.session.redactor.text(call.input.text)[0]
            if self._definition is not None:
                text = scope.session.redactor.text(self._definition)[0]
                extra[names.RUN_DEFINITION] = text
                extra[names.RUN_DEFINITION_DIGEST] = digest(text)
        except Exception:
            if scope.session.mode == "replay":
                raise
            scope.session.failed(f"the input of {call.name}")
        return extra

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the run."""
        if self._step is not None:
            self._body.__exit__(kind, error, trace)
            self.end(error)

    def end(self, error: BaseException | None = None) -> None:
        """End the run that :meth:`begin` began."""
        step = self._step
        if step is None:
            return
        if error is not None:
            step.fail(error)
        else:
            step.succeed(self.output, outcome=self.outcome)

    async def __aenter__(self) -> Self:
        """Begin the run."""
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the run."""
        self.__exit__(kind, error, trace)


def agent_run(
    name: str,
    *,
    input: object = None,  # noqa: A002 — the word for it
    version: str | None = None,
    session: str | None = None,
    user: str | None = None,
    definition: Mapping[str, object] | None = None,
    attributes: Mapping[str, str | bool | int | float] | None = None,
) -> AgentRun:
    """A run of an agent, or, inside another run, a step of kind ``agent``.

    Args:
        name: the agent's name.
        input: what it was asked; any value.
        version: the agent's version.
        session: the conversation this run is a part of (``gen_ai.conversation.id``).
        user: whom it works for (``user.id``).
        definition: what makes this agent what it is: instructions, model settings, files. Kept with its digest.
        attributes: anything else to find the run by.
    """
    scope = boundary.here()
    if scope is None:
        return AgentRun(None, definition=None)
    named = {names.GEN_AI_AGENT_VERSION: version, names.GEN_AI_CONVERSATION_ID: session, names.USER_ID: user}
    given: dict[str, Any] = {**(attributes or {}), **{key: value for key, value in named.items() if value is not None}}
    try:
        asked = None if input is None else codec.encode(input)
        defined = None if definition is None else remembered(dict(definition), _defined)  # the same for most runs
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(f"the input of {name}")
        asked = defined = None
    return AgentRun(Call(kind="agent", name=name, input=asked, attributes=given), definition=defined)


def _defined(definition: object) -> str:
    return codec.encode(definition).text


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A named, versioned prompt. Model calls made after it, in this context, carry its name, version and digest."""

    name: str
    version: str | None
    template: str
    digest: str
    """``sha256:<hex>`` of the template's UTF-8 bytes."""
    _tokens: list[Token[Mapping[str, Any]]] = field(default_factory=list, repr=False, compare=False)
    _declared: list[tuple[Mapping[str, Any], Token[Mapping[str, Any]]]] = field(default_factory=list, repr=False, compare=False)
    """What its declaration put in force, until a block is entered."""

    def format(self, **variables: object) -> str:
        """Fill the template's ``{name}`` places; the variables are kept with the model calls that follow."""
        if boundary.here() is not None:
            texts = {names.GEN_AI_PROMPT_VARIABLE_PREFIX + name: _text(value) for name, value in variables.items()}
            in_force.set(MappingProxyType({**still_loaded(), **self._attributes(), **texts}))
        return self.template.format(**variables)

    def __str__(self) -> str:
        """The template."""
        return self.template

    def _attributes(self) -> dict[str, Any]:
        attributes: dict[str, Any] = {
            names.GEN_AI_PROMPT_NAME: self.name,
            names.PROMPT_DIGEST: self.digest,
            names.PROMPT_TEMPLATE: self.template,
        }
        if self.version is not None:
            attributes[names.GEN_AI_PROMPT_VERSION] = self.version
        return attributes

    def __enter__(self) -> Self:
        """The prompt is in force in this block only."""
        if self._declared and in_force.get() is self._declared[0][0]:  # ``with prompt(…):``, whose block begins with the declaration
            self._tokens.append(self._declared.pop()[1])
        else:
            self._tokens.append(in_force.set(MappingProxyType({**still_loaded(), **self._attributes()})))
        return self

    def __exit__(self, *_: object) -> None:
        """The prompt in force before is so again."""
        token = self._tokens.pop()
        try:
            in_force.reset(token)
        except ValueError:  # left in another context than entered, as asynchronous generators are
            return


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        return f"<{type(value).__name__}>"


def prompt(name: str, version: str | None = None, *, template: str) -> Prompt:
    """Declare the prompt in force from here on, in this context.

    Args:
        name: the prompt's name, as in your registry or code.
        version: its version there; the digest of the template identifies it where there is none.
        template: the text, with ``{name}`` places for :meth:`Prompt.format`.
    """
    made = Prompt(name=name, version=version, template=template, digest=digest(template))
    if boundary.here() is not None:
        attributes = MappingProxyType({**still_loaded(), **made._attributes()})
        made._declared.append((attributes, in_force.set(attributes)))
    return made


def record_decision(
    tool: str,
    outcome: Decision,
    *,
    by: str,
    reason: str | None = None,
    policy: str | None = None,
    arguments: Mapping[str, object] | None = None,
    call_id: str | None = None,
) -> None:
    """Keep a decision about a tool call with the run: who allowed or denied what, and why.

    Args:
        tool: name of the tool.
        outcome: ``allow``, ``deny`` or ``require_approval``.
        by: who or what decided: a person, a service account, a policy engine.
        reason: why.
        policy: the policy or permission it rests on.
        arguments: the exact arguments decided on; the decision is bound to their digest.
        call_id: id of the call decided on.
    """
    scope = boundary.here()
    if scope is None:
        return
    attributes: dict[str, Any] = {names.GEN_AI_TOOL_CALL_DECISION_OUTCOME: outcome, names.GEN_AI_TOOL_NAME: tool}
    try:
        encoded = None if arguments is None else codec.encode(dict(arguments)).text
        decision = {
            "tool": tool,
            "outcome": outcome,
            "by": by,
            "reason": reason,
            "policy": policy,
            "arguments_digest": None if encoded is None else digest(encoded),
            "call_id": call_id,
        }
        attributes[names.DECISION] = canonical_json(decision)
        made = Call(kind="decision", name=tool, input=codec.encode(decision), attributes=attributes, call_id=call_id)
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(f"a decision about {tool}")
        return
    boundary.call(scope, made, lambda: None)


def read(name: str, source: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Read something that changes from run to run (clock, randomness, environment, file, database) through the record.

    ``read("now", datetime.now)`` calls the source while recording and gives the recorded value in a replay. A coroutine function
    may be a source too: ``await read("row", fetch, 7)``.

    Args:
        name: what is read; part of what a replay matches.
        source: called with the remaining arguments.
        *args: given to ``source``.
        **kwargs: given to ``source``.
    """
    scope = boundary.here()
    if scope is None:
        return source(*args, **kwargs)
    asked: dict[str, object] = {"read": name}
    if args:
        asked["arguments"] = list(args)
    if kwargs:
        asked["keywords"] = dict(kwargs)
    try:
        made = Call(kind="io", name=name, input=codec.encode(asked), effect="read")
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(f"the read of {name}")
        return source(*args, **kwargs)
    if inspect.iscoroutinefunction(source):
        return cast("T", boundary.acall(scope, made, lambda: source(*args, **kwargs)))
    return boundary.call(scope, made, lambda: source(*args, **kwargs))


@contextmanager
def scope(key: object) -> Iterator[None]:
    """Name the calls made in this block, where the place they are made from does not tell which they are.

    For workers that take from a queue: which of them gets an item is chance, so name the item, ``with scope(item.id):``. The name
    counts from the step around the workers, whichever of them enters it.

    Args:
        key: the same in every execution for the same piece of work; of what is no text, its ``str``.
    """
    here = boundary.here()
    if here is None:
        yield
        return
    token = scopes.enter(here.keyed(key if isinstance(key, str) else _text(key)))
    try:
        yield
    finally:
        scopes.leave(token)
