"""From what a dialect found in a span to the step: outcome, grade, versions and run, by one set of rules for all dialects.

A dialect reads its attributes into a :class:`Found` and gives it to :func:`drafted`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from spanreplay.boundary.call import Kind, OutcomeName
from spanreplay.content.codec import encode
from spanreplay.replay.model import Grade, Json, Reason
from spanreplay.replay.reading.dialect import RunDraft, StepDraft
from spanreplay.replay.reading.evidence import proof
from spanreplay.replay.reading.fields import Fields, decoded_json
from spanreplay.replay.reading.messages import finish_reason, usage
from spanreplay.replay.reading.outcomes import failure, outcome
from spanreplay.replay.reading.versions import step_versions
from spanreplay.replay.reading.withheld import empty_messages, marks, told
from spanreplay.replay.reasons import (
    CONTENT_ELSEWHERE,
    CUT,
    DROPPED_ATTRIBUTES,
    DROPPED_EVENTS,
    EMPTY_MESSAGE,
    INPUT_ABSENT,
    NEVER_ENDED,
    OUTPUT_ABSENT,
    REDACTED_INPUT,
    REDACTED_RESULT,
    worst,
)
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord

SESSIONS: Final = (
    a.GEN_AI_CONVERSATION_ID,
    a.SESSION_ID,
    *(f"langsmith.metadata.{name}" for name in ("session_id", "thread_id", "conversation_id")),
    *(f"traceloop.association.properties.{name}" for name in ("session_id", "thread_id", "conversation_id")),
    "gcp.vertex.agent.session_id",
    "ai.telemetry.metadata.sessionId",
)
"""Where spans name their session, whoever wrote them; the first counts."""
_LANGCHAIN_AGENT: Final = "lc_agent_name"
"""How LangChain's ``create_agent`` names the agent in the metadata of all that runs in it (1.0 on)."""
_METADATA: Final = "metadata"
"""Where OpenInference and MLflow have the metadata, as JSON."""
_AGENTS: Final = tuple(
    f"{prefix}.{_LANGCHAIN_AGENT}" for prefix in ("langsmith.metadata", "traceloop.association.properties", "langfuse.observation.metadata")
)
_CALLERS: Final = frozenset({"model_call", "agent"})
"""What asks for calls: the ids that some write beside them are those of the calls."""
_STATUSES: Mapping[str, OutcomeName] = {"failed": "error", "cancelled": "cancelled"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a dialect's own attributes say; what the ``gen_ai.*`` attributes of the span say too is read by :func:`drafted`."""

    kind: Kind
    name: str
    """The tool, model, agent, …"""
    asked: Json = None
    """``{"messages", "system", "tools", "params"}`` of a model or an agent, else ``{"arguments": …}``; ``None`` if not captured."""
    answered: Json = None
    """``{"messages", "finish"}`` or ``{"result": …}``."""
    call_id: str | None = None
    agent: str | None = None
    agent_version: str | None = None
    session_id: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    """Token counts by the last part of their ``gen_ai.usage.*`` name, dots as underscores."""
    versions: Mapping[str, Json] = field(default_factory=dict)
    """As in :attr:`StepDraft.versions`; merged with those of the ``gen_ai.*`` attributes, member by member."""
    error: Json = None
    """``{"type", "message"}`` where the dialect has failures that neither status nor ``error.type`` nor an exception event tells."""
    outcome: OutcomeName | None = None
    """Where the dialect knows better than status and error."""
    response_id: str | None = None
    every_setting: bool = False
    """The parameters of the model call are all that it had: what is not among them was not set."""
    parent_span: str | None = None
    transport: bool = False
    serves: bool = False
    """The server's side of a call."""
    runs: bool = False
    """The span may be the root of a run."""
    frame: bool = False
    """As :attr:`StepDraft.frame`: no step, but the root of a run if everything in it happened inside the span. Needs ``runs``."""
    reasons: tuple[Reason, ...] = ()
    """More to say of the step; they do not lower the grade, see ``grade``."""
    grade: Grade = "exact"
    """The best that what was found allows, beside the rules for all dialects."""


def drafted(span: SpanRecord, fields: Fields, found: Found) -> StepDraft:
    """The step that a span is.

    Args:
        span: the span.
        fields: its attributes, after the dialect has read them: what was found cut lowers the grade.
        found: what the dialect found.
    """
    answered = told(found.answered)
    asked = told(found.asked, answered=answered is not None)
    if asked is not found.asked or answered is not found.answered:
        found = replace(found, asked=asked, answered=answered)
    error = found.error if found.error is not None else failure(span, fields)
    result = found.answered.get("result") if isinstance(found.answered, dict) else None
    ended: OutcomeName = found.outcome or outcome(span, error, result)
    if found.outcome is None and ended == "ok" and found.kind == "model_call":
        status = _STATUSES.get(fields.text(a.GEN_AI_RESPONSE_STATUS) or "")
        ended = status if status is not None else "error" if finish_reason(fields) == "error" else "ok"
    versions = joined(step_versions(span, fields), found.versions)
    grade, reasons = _grade(span, fields, found, ended)
    agent = found.agent or (None if found.frame else fields.text(a.GEN_AI_AGENT_NAME, a.GEN_AI_AGENT_ID)) or _langchain_agent(fields)
    session = found.session_id or fields.identifier(*SESSIONS)
    run: RunDraft | None = None
    if found.runs:
        operation = fields.text(a.GEN_AI_OPERATION_NAME)
        run = RunDraft(
            agent_name=agent
            or fields.text(a.GEN_AI_WORKFLOW_NAME)
            or (found.name if found.kind == "agent" and not found.frame and found.name != operation else None),
            agent_version=found.agent_version or fields.text(a.GEN_AI_AGENT_VERSION),
            session_id=session,
            outcome=ended,
            error=error,
            input=found.asked,
            output=found.answered,
            versions=versions,
            grade="semantic",
        )
    return StepDraft(
        kind=found.kind,
        name=found.name,
        grade=grade,
        reasons=(*reasons, *found.reasons),
        outcome=ended,
        call_id=found.call_id or (None if found.kind in _CALLERS else fields.identifier(a.GEN_AI_TOOL_CALL_ID)),
        agent=agent,
        session_id=session,
        input=found.asked,
        output=found.answered,
        error=error,
        usage={**usage(fields), **{kind: count for kind, count in found.usage.items() if count >= 0}},
        versions=versions,
        typed_input=_typed(found.asked, "arguments"),
        typed_result=_typed(found.answered, "result"),
        response_id=found.response_id or fields.identifier(a.GEN_AI_RESPONSE_ID),
        every_setting=found.every_setting,
        parent_span=found.parent_span,
        transport=found.transport,
        serves=found.serves,
        run=run,
        frame=found.frame,
    )


def _langchain_agent(fields: Fields) -> str | None:
    metadata = fields.attributes.get(_METADATA)
    held = decoded_json(metadata)[0] if isinstance(metadata, str) and _LANGCHAIN_AGENT in metadata else None
    return fields.text(*_AGENTS) or (Fields(held).text(_LANGCHAIN_AGENT) if isinstance(held, dict) else None)


def _typed(view: Json, key: str) -> str | None:
    return encode(view[key]).text if isinstance(view, dict) and key in view else None


def _grade(span: SpanRecord, fields: Fields, found: Found, ended: OutcomeName) -> tuple[Grade, tuple[Reason, ...]]:
    reasons: list[Reason] = []
    held: list[Grade] = ["semantic", found.grade]
    if found.asked is None:
        reasons.append(_absent(fields, INPUT_ABSENT, "input"))
    if found.answered is None and ended in ("ok", "unknown"):
        reasons.append(_absent(fields, OUTPUT_ABSENT, "output"))
    passed = found.kind in ("agent", "handoff")  # these are passed through, never answered: their content is not needed
    if reasons and not passed:
        held.append("structure")
    if count := marks(found.asked):
        reasons.append(Reason(code=REDACTED_INPUT, detail=f"redacted where it was recorded: {_texts(count)} of the input"))
    if found.kind == "model_call" and (count := empty_messages(found.asked)):
        detail = f"{count} message{' has' if count == 1 else 's have'} no content: what was said was left out where it was recorded"
        reasons.append(Reason(code=EMPTY_MESSAGE, detail=detail))
    if count := marks(found.answered):
        held.append("semantic" if passed else "structure")
        reasons.append(Reason(code=REDACTED_RESULT, detail=f"redacted where it was recorded: {_texts(count)} of the output"))
    if span.end_ns is None:
        held.append("incomplete")
        reasons.append(Reason(code=NEVER_ENDED, detail="started, and no end was recorded"))
    for code, count in ((DROPPED_ATTRIBUTES, span.dropped_attributes), (DROPPED_EVENTS, span.dropped_events)):
        if count:
            held.append("incomplete")
            reasons.append(Reason(code=code, detail=f"{count} dropped by the recording SDK's limits"))
    proved = [reason for _, reason in proof(span, fields)[0] if reason.code == CUT] if a.STEP_DIGESTS in span.attributes else []
    seen = [reason for reason in fields.reasons.values() if reason.field not in {known.field for known in proved}]
    if proved or seen:
        held.append("incomplete")
        reasons += (*proved, *seen)
    return worst(held), tuple(reasons)


def _texts(count: int) -> str:
    return "a text" if count == 1 else f"{count} texts"


def _absent(fields: Fields, code: str, side: str) -> Reason:
    elsewhere = fields.text(f"gen_ai.{side}.messages_ref")
    if elsewhere is not None:
        return Reason(code=CONTENT_ELSEWHERE, detail=f"the {side} was uploaded to {elsewhere}")
    return Reason(code=code, detail=f"no {side} was captured")


# ---- one step from two records -----------------------------------------------------------------------------------

_SINGLE = (
    "call_id", "agent", "session_id", "input", "output", "error", "effect", "action_id", "decision", "target", "response_id", "wire",
    "typed_input", "typed_result", "typed_error", "typed_items", "requested_by_span", "retry_of_span", "parent_span", "run",
)  # fmt: skip


def lacks(draft: StepDraft) -> bool:
    """Whether another reading of the same span could tell more."""
    return draft.input is None or draft.output is None or (draft.call_id is None and draft.kind == "tool_call")


def filled(draft: StepDraft, other: StepDraft) -> StepDraft:
    """A step with what only another reading, or another record, of the same call knows."""
    added: dict[str, Any] = {
        name: getattr(other, name) for name in _SINGLE if getattr(draft, name) is None and getattr(other, name) is not None
    }
    for name in ("usage", "resources"):
        if not getattr(draft, name) and getattr(other, name):
            added[name] = getattr(other, name)
    if draft.outcome not in ("error", "timeout", "tool_error", "cancelled"):
        added.pop("error", None)
    gone = {code for name, code in (("input", INPUT_ABSENT), ("output", OUTPUT_ABSENT)) if name in added}
    reasons = tuple(reason for reason in draft.reasons if reason.code not in gone)
    grade = draft.grade
    if grade == "structure" and not any(reason.code in (INPUT_ABSENT, OUTPUT_ABSENT) for reason in reasons):
        grade = "semantic"
    return replace(
        draft,
        **added,
        versions=joined(other.versions, draft.versions),
        attempt=max(draft.attempt, other.attempt),
        every_setting=draft.every_setting or other.every_setting,
        grade=grade,
        reasons=reasons,
    )


def combined(draft: StepDraft, other: StepDraft) -> StepDraft:
    """A step with what another span of the same call knows."""
    ours, theirs = (draft.input, draft.output), (other.input, other.output)
    if draft.kind == "model_call" and other.grade != "incomplete":
        ours = tuple(_clearer(one, two) for one, two in zip(ours, theirs, strict=True))
    whole = replace(draft, input=_completed(ours[0], theirs[0]), output=_completed(ours[1], theirs[1]))
    both = filled(whole, replace(other, run=None))
    run = draft.run if draft.run is None or other.run is None else _run_of_both(draft.run, other.run)
    return replace(both, run=run, transport=draft.transport and other.transport)


def _clearer(view: Json, other: Json) -> Json:
    """Of two views of a side the other where ours made one text of what are several messages, or of calls that were asked for."""
    ours, theirs = ((v.get("messages") if isinstance(v, dict) else None) or [] for v in (view, other))
    if len(ours) != 1 or {part.get("type") for part in ours[0]["parts"]} - {"text"}:
        return view
    several = len(theirs) > 1 or (bool(other.get("system")) and not view.get("system") if theirs else False)
    return other if several or any(part.get("type") == "tool_call" for message in theirs for part in message["parts"]) else view


def _completed(view: Json, other: Json) -> Json:
    """What a model was asked or answered, with the members that only the other record has; no messages at all are no view."""
    if not isinstance(view, dict) or not isinstance(other, dict) or "messages" not in view or "messages" not in other:
        return view
    if other["messages"] and not view["messages"] and not view.get("system"):
        view = {**view, "messages": other["messages"], "system": other.get("system")} if "system" in view else {**view, **other}
    missing = {name: other[name] for name in ("tools", "finish") if not view.get(name) and other.get(name)}
    params = other.get("params")
    if isinstance(params, dict) and params:
        missing["params"] = joined(params, view["params"]) if isinstance(view.get("params"), dict) else params
    return {**view, **missing} if missing else view


def _run_of_both(run: RunDraft, other: RunDraft) -> RunDraft:
    names = ("agent_name", "agent_version", "session_id", "input", "output", "definition")
    added: dict[str, Any] = {name: getattr(other, name) for name in names if getattr(run, name) is None}
    return replace(run, **added, versions=joined(other.versions, run.versions))


def joined(less: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Two sets of versions, member by member; the second wins."""
    both = {**less, **more}
    for name in less.keys() & more.keys():
        if isinstance(less[name], dict) and isinstance(more[name], dict):
            both[name] = {**less[name], **more[name]}
    return both
