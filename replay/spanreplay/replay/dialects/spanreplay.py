"""Our own spans: everything that :mod:`spanreplay.semconv.attributes` names.

A value under ``spanreplay.*`` is there only where no standard attribute holds the same text, so each is read with its standard name as the
second choice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, get_args

from spanreplay.boundary.call import INTENT_EFFECTS, Kind, OutcomeName
from spanreplay.boundary.comprehensions import plain
from spanreplay.replay.model import Grade, Json, Reason, Wire
from spanreplay.replay.reading.dialect import RunDraft, StepDraft
from spanreplay.replay.reading.evidence import proof, typed_view
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import model_input, model_output, usage
from spanreplay.replay.reading.outcomes import failure, outcome
from spanreplay.replay.reading.versions import step_versions
from spanreplay.replay.reading.wire import read_wire, wire_gap
from spanreplay.replay.reasons import ATTESTED, CUT, EFFECT_UNKNOWN, INPUT_ABSENT, NEVER_ENDED, OUTPUT_ABSENT, WIRE_ABSENT, worst
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

_KINDS: Final[Mapping[str, Kind]] = {kind: kind for kind in get_args(Kind)}
_OUTCOMES: Final[Mapping[str, OutcomeName]] = {name: name for name in get_args(OutcomeName)}
_UNANSWERED: Final = frozenset({"abandoned", "cancelled", "interrupted", "rejected", "deferred"})
"""Outcomes that need neither a result nor an exception to be repeated."""


class SpanreplayDialect:
    """Reads the spans that the Boundary opened."""

    NAME = "spanreplay"
    PRIORITY = 0

    def claims(self, span: SpanRecord) -> bool:
        """A step kind or the mark of a run root."""
        return a.STEP_KIND in span.attributes or a.RUN_ROOT in span.attributes

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step, with its run where the span is the root of one; ``None`` for a kind that this version does not know."""
        del logs
        fields = Fields(span.attributes)
        root = fields.true(a.RUN_ROOT)
        kind = _KINDS.get(fields.text(a.STEP_KIND) or "agent")
        if kind is None:
            return None
        draft = _step(span, fields, kind)
        if not root:
            return draft
        return _with_run(draft, span, fields)


class _Typed(NamedTuple):
    """The typed JSON texts of a step."""

    input: str | None
    result: str | None
    items: str | None
    error: str | None


def _step(span: SpanRecord, fields: Fields, kind: Kind) -> StepDraft:
    typed = _Typed(
        input=_typed(fields, a.STEP_INPUT, a.GEN_AI_TOOL_CALL_ARGUMENTS),
        result=_typed(fields, a.STEP_RESULT, a.GEN_AI_TOOL_CALL_RESULT),
        items=_typed(fields, a.STEP_ITEMS),
        error=_typed(fields, a.STEP_ERROR),
    )
    wire, wire_reasons = read_wire(fields)
    asked, answered = _views(fields, kind, typed)
    error = failure(span, fields)
    ended = _outcome(span, fields, error)
    viewed = (asked is not None, answered is not None or typed.error is not None or error is not None)
    grade, reasons = _graded(span, fields, kind, ended, typed, wire, wire_reasons, viewed)
    name = fields.text(a.STEP_NAME, a.GEN_AI_TOOL_NAME, a.GEN_AI_REQUEST_MODEL, a.GEN_AI_AGENT_NAME) or span.name or kind
    return StepDraft(
        kind=kind,
        name=name,
        grade=grade,
        reasons=reasons,
        outcome=ended,
        call_id=fields.identifier(a.GEN_AI_TOOL_CALL_ID),
        agent=fields.text(a.GEN_AI_AGENT_NAME),
        session_id=fields.identifier(a.GEN_AI_CONVERSATION_ID, a.SESSION_ID),
        input=asked,
        output=answered,
        error=error,
        usage=usage(fields),
        effect=fields.text(a.STEP_EFFECT),
        action_id=fields.identifier(a.STEP_ACTION_ID),
        decision=fields.json(a.DECISION),
        target=fields.text(a.STEP_TARGET) or Fields(span.resource.attributes).text(*a.DEPLOYMENT_ENVIRONMENT),
        resources=_list(fields.json(a.STEP_RESOURCES)),
        versions=step_versions(span, fields),
        attempt=fields.integer(a.STEP_ATTEMPT) or 1,
        path=_names(fields, a.STEP_PATH),
        process=fields.identifier(a.PROCESS_ID),
        seq_fork=fields.integer(a.STEP_FORK),
        clock_reads=_names(fields, a.STEP_CLOCK),
        orders=_names(fields, a.STEP_ORDER),
        passed=span.attributes.get(a.STEP_PASSED) is True,
        seq_start=fields.integer(a.STEP_SEQ_START),
        seq_end=fields.integer(a.STEP_SEQ_END),
        turn=fields.integer(a.STEP_TURN),
        typed_input=typed.input,
        typed_result=typed.result,
        typed_error=typed.error,
        typed_items=typed.items,
        wire=wire,
        answered_from=_answered_from(fields),
        stands_for=fields.integer(a.STEP_STANDS_FOR),
        changed=fields.json(a.STEP_CHANGED),
        typed_left=_typed(fields, a.STEP_LEFT),
        typed_sent=_typed(fields, a.STEP_SENT),
        injected=fields.text(a.STEP_INJECTED),
        parent_span=fields.identifier(a.STEP_PARENT),
        requested_by_span=fields.identifier(a.STEP_REQUESTED_BY),
        requested_in=fields.identifier(a.STEP_REQUESTED_IN),
        retry_of_span=fields.identifier(a.STEP_RETRY_OF),
        response_id=fields.identifier(a.GEN_AI_RESPONSE_ID),
    )


def _names(fields: Fields, name: str) -> str | None:
    """A text in which functions are named, as every version of Python names them."""
    return plain(fields.text(name) or "") or None


def _answered_from(fields: Fields) -> tuple[str, int] | None:
    run, step = fields.identifier(a.STEP_ANSWERED_FROM_RUN), fields.integer(a.STEP_ANSWERED_FROM_STEP)
    return None if run is None or step is None else (run, step)


def _typed(fields: Fields, *names: str) -> str | None:
    """A typed text. The empty text is one too: not typed JSON, but what was found."""
    for name in names:
        value = fields.attributes.get(name)
        if isinstance(value, str):
            return value
    return None


def _views(fields: Fields, kind: Kind, typed: _Typed) -> tuple[Json, Json]:
    """Input and output as people see them: the messages of a model or an agent, else the typed values without their tags."""
    named = (("input", typed.input), ("result", typed.result), ("items", typed.items))
    plain = {what: _plain(fields, what, text) for what, text in named if text is not None}
    asked: Json = None
    answered: Json = None
    if kind in ("model_call", "agent"):
        asked, answered = model_input(fields), model_output(fields)
    if asked is None and "input" in plain:
        asked = {"arguments": plain["input"]}
    if answered is None and ("result" in plain or "items" in plain):
        result = plain.get("result")
        answered = {"result": plain["items"] if result is None and "items" in plain else result}
    return asked, answered


def _plain(fields: Fields, what: str, text: str) -> Json:
    value, whole = typed_view(text)
    if not whole:
        fields.cut(what, f"the {what} is not whole JSON ({len(text.encode('utf-8', 'surrogatepass'))} bytes)")
    return value


def _outcome(span: SpanRecord, fields: Fields, error: Json) -> OutcomeName:
    named = _OUTCOMES.get(fields.text(a.STEP_OUTCOME) or "")
    if named is not None:
        return named
    return "unknown" if span.end_ns is None else outcome(span, error)


def _graded(
    span: SpanRecord,
    fields: Fields,
    kind: Kind,
    outcome: OutcomeName,
    typed: _Typed,
    wire: Wire | None,
    wire_reasons: Sequence[Reason],
    viewed: tuple[bool, bool],
) -> tuple[Grade, tuple[Reason, ...]]:
    """The worst of what the span holds, what is proven of it, and what is damaged."""
    findings, left_off = proof(span, fields)
    damage = [reason for reason in wire_reasons if reason.code != WIRE_ABSENT]
    if not any(reason.code == CUT for _, reason in findings):  # else the digests have said so already, and more exactly
        damage += fields.reasons.values()
    if span.end_ns is None:
        damage += _unended(fields)
    best, reason = _held(
        kind=kind,
        outcome=outcome,
        wire=wire,
        typed_input=typed.input if a.STEP_INPUT not in left_off else None,
        answer=(typed.result if a.STEP_RESULT not in left_off else None) or (typed.items if a.STEP_ITEMS not in left_off else None),
        raised=typed.error is not None,
        viewed=viewed,
    )
    reasons = [*(reason for _, reason in findings), *damage, *([reason] if reason is not None else []), *wire_reasons]
    grades: list[Grade] = [best, *(grade for grade, _ in findings)]
    if a.STEP_LEFT in left_off:
        grades.append("semantic")
    if damage:
        grades.append("incomplete")
    if span.attributes.get(a.STEP_ATTESTED) is True:
        grades.append("structure")
        reasons = [known for known in reasons if known is not reason]  # not absent by any fault
        reasons.append(Reason(code=ATTESTED, detail="another program did it and told of it; a replay gives what it told"))
    return worst(grades), tuple(dict.fromkeys(reasons))


def _unended(fields: Fields) -> Iterator[Reason]:
    yield Reason(code=NEVER_ENDED, detail="started, and no end was recorded")
    effect = fields.text(a.STEP_EFFECT)
    if effect in INTENT_EFFECTS:
        known = "what it does is not known" if effect == "unknown" else f"its effect is {effect}"
        yield Reason(code=EFFECT_UNKNOWN, detail=f"it may have acted: {known}, and it began")


def _held(
    *,
    kind: Kind,
    outcome: OutcomeName,
    wire: Wire | None,
    typed_input: str | None,
    answer: str | None,
    raised: bool,
    viewed: tuple[bool, bool],
) -> tuple[Grade, Reason | None]:
    """The best grade that what the span holds allows, and why it is not exact."""
    if kind == "agent":  # passed through, never answered: nothing that it holds is needed
        return "exact", None
    if wire is not None:
        gap = wire_gap(wire, outcome, raised=raised)
        return ("exact", None) if gap is None else ("incomplete", gap)
    over = answer is not None or raised or outcome in _UNANSWERED
    if typed_input is not None and over:
        return "exact", None
    if outcome == "unknown":
        return "incomplete", Reason(code=OUTPUT_ABSENT, detail="how it ended is not known")
    if all(viewed):
        code = WIRE_ABSENT if kind == "model_call" else OUTPUT_ABSENT if typed_input is not None else INPUT_ABSENT
        what = "the HTTP exchange" if kind == "model_call" else "the typed result" if typed_input is not None else "the typed arguments"
        return "semantic", Reason(code=code, detail=f"the span has the view of the call, not {what}")
    code, what = (INPUT_ABSENT, "input") if not viewed[0] else (OUTPUT_ABSENT, "output")
    return "structure", Reason(code=code, detail=f"the span has no {what}")


def _with_run(draft: StepDraft, span: SpanRecord, fields: Fields) -> StepDraft:
    typed_input = _typed(fields, a.RUN_INPUT) or draft.typed_input
    typed_output = _typed(fields, a.RUN_OUTPUT) or draft.typed_result
    definition = fields.json(a.RUN_DEFINITION)
    run = RunDraft(
        run_id=fields.identifier(a.RUN_ID),
        agent_name=fields.text(a.GEN_AI_AGENT_NAME, a.RUN_NAME, a.STEP_NAME),
        agent_version=fields.text(a.GEN_AI_AGENT_VERSION),
        session_id=draft.session_id,
        outcome=draft.outcome,
        error=draft.error,
        definition=definition,
        input=typed_view(typed_input)[0] if typed_input is not None else draft.input,
        output=typed_view(typed_output)[0] if typed_output is not None else draft.output,
        artifacts=_list(fields.json(a.RUN_ARTIFACTS)),
        versions=draft.versions,
        grade=draft.grade,
        reasons=draft.reasons,
        path=_names(fields, a.RUN_PATH),
        command_id=fields.identifier(a.RUN_COMMAND_ID),
        is_command=fields.true(a.RUN_COMMAND),
        exit_code=fields.integer(a.RUN_EXIT_CODE),
        typed_input=typed_input,
        typed_output=typed_output,
        typed_error=draft.typed_error,
        ended_by=_ended_by(span, fields) if fields.true(a.RUN_ERRORS_KEPT) else None,
        redaction=fields.text(a.RUN_REDACTION),
        seed=fields.text(a.RUN_SEED),
        random_seeded=fields.true(a.RUN_RANDOM_SEEDED),
        hash_seed=fields.text(a.RUN_HASH_SEED),
        clock_reads=tuple(text for text in (_names(fields, a.STEP_CLOCK), _names(fields, a.RUN_CLOCK)) if text is not None),
        orders=tuple(text for text in (_names(fields, a.STEP_ORDER), _names(fields, a.RUN_ORDER)) if text is not None),
        code=fields.json(a.RUN_CODE),
        state=fields.json(a.RUN_STATE),
        variables=fields.json(a.RUN_VARIABLES),
        dropped=fields.integer(a.RUN_DROPPED) or 0,
        untaped=_list(fields.json(a.RUN_UNTAPED)),
        forked_from=fields.identifier(a.FORKED_FROM),
    )
    return replace(draft, run=run, root=True)


def _ended_by(span: SpanRecord, fields: Fields) -> tuple[str, ...]:
    found = (_typed(fields, name) for name in sorted(span.attributes) if name.startswith(a.RUN_ERROR))
    return tuple(text for text in found if text is not None)


def _list(value: Json) -> tuple[Json, ...]:
    return tuple(value) if isinstance(value, list) else () if value is None else (value,)


DIALECT: Final = SpanreplayDialect()
