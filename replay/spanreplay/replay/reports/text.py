"""Runs, steps and spans as text for people. Coloured on a terminal, plain elsewhere and where ``NO_COLOR`` is set."""

from collections.abc import Iterable, Sequence
from typing import Final

from spanreplay.replay.forked_lines import fork_notes
from spanreplay.replay.lines import BAD, DIM, GOOD, LOUD, Line, Piece, rendered
from spanreplay.replay.model import GRADE_WORDS, Json, Reason, Run, Step, Wire
from spanreplay.replay.reading.messages import asked_for
from spanreplay.replay.rebuilding.assembly import notes
from spanreplay.replay.rebuilding.grouping import read_spans
from spanreplay.replay.rebuilding.tree import Forest, SpanKey, build
from spanreplay.replay.showing import NO_STEPS, call_text, duration, json_text, moment, safe, safe_lines, short, short_id, size
from spanreplay.spans.record import STATUS_ERROR, Record

REASONS_SHOWN: Final = 12
_KIND_WIDTH: Final = len("model call")
_INDENT_LIMIT: Final = 20
_GRADE_STYLES: Final = {"exact": "green", "semantic": "cyan", "structure": "yellow", "incomplete": "red"}


def render_run(run: Run, *, colour: bool | None = None) -> str:
    """A run, step by step, in order.

    Args:
        run: the run.
        colour: with terminal colours; left out, whether stdout is a terminal that wants them.
    """
    lines = _heading(run)
    number = len(str(len(run.steps)))
    graded = any(step.grade != run.grade for step in run.steps)  # else the heading says it for all
    depths: dict[int, int] = {}
    for step in run.steps:
        depths[step.seq] = 0 if step.parent_seq is None else depths.get(step.parent_seq, -1) + 1
        lines += _step_lines(step, number, min(depths[step.seq], _INDENT_LIMIT), graded=graded, forked=run.forked_from is not None)
    if not run.steps and run.grade != "exact":
        lines.append([Piece("  no steps", DIM)])
    if run.output is not None:
        lines += [[], [Piece("  output  ", DIM), Piece(_gist(run.output))]]
    lines += _reason_lines(run.grade_reasons)
    return rendered(lines, colour)


def _heading(run: Run) -> list[Line]:
    title = [Piece("run ", DIM), Piece(safe(short_id(run.run_id)), LOUD)]
    if run.agent_name:
        title.append(Piece(f" · {safe(run.agent_name)}{' ' + safe(run.agent_version) if run.agent_version else ''}"))
    title += [Piece(" · "), Piece(run.outcome, GOOD if run.outcome == "ok" else BAD)]
    if run.exit_code is not None:
        title.append(Piece(f" · exit code {run.exit_code}"))
    title += [Piece(" · "), _graded(run)]
    facts = [moment(run.started_ns), duration(run.started_ns, run.ended_ns), _count(len(run.steps), "step")]
    tokens = _tokens([step for step in run.steps if step.kind == "model_call"])
    facts += [tokens] if tokens else []
    facts += [_count(run.unclassified_spans, "other span")] if run.unclassified_spans else []
    facts += [f"session {safe(run.session_id)}"] if run.session_id else []
    facts += [f"forked from {safe(short_id(run.forked_from))}"] if run.forked_from else []
    lines: list[Line] = [title, [Piece("  " + " · ".join(facts), DIM)]]
    if run.error is not None:
        lines.append([Piece(f"  {_error_text(run.error)}", BAD)])
    if run.input is not None:
        lines.append([Piece("  input   ", DIM), Piece(_gist(run.input))])
    lines.append([])
    return lines


def _graded(run: Run) -> Piece:
    if not run.steps and run.grade == "exact":
        return Piece(NO_STEPS, DIM)
    return Piece(GRADE_WORDS[run.grade], _GRADE_STYLES[run.grade])


def _gist(value: Json, limit: int = 160) -> str:
    """A run's input or output on one line: of messages the last text, else the value."""
    said = list(_said(value)) if isinstance(value, dict) else []
    return short(said[-1] if said else value, limit)


def _step_lines(step: Step, number: int, depth: int, *, graded: bool, forked: bool) -> list[Line]:
    pad = "  " * depth
    beside = "┃" if step.overlaps else " "
    first: Line = [
        Piece(f"  {step.seq:>{number}} "),
        Piece(f"{beside} ", "yellow"),
        Piece(f"{pad}{step.kind.replace('_', ' '):<{_KIND_WIDTH}}  ", DIM),
        Piece(_called(step), LOUD),
    ]
    notes = [duration(step.started_ns, step.ended_ns)]
    tokens = _tokens([step])
    notes += [tokens] if tokens else []
    notes += [step.effect] if step.effect else []
    notes += [f"asked for {asker}"] if (asker := _asker(step)) is not None else []
    notes += [f"attempt {step.attempt}" + (f" after {step.retry_of}" if step.retry_of is not None else "")] if step.attempt > 1 else []
    notes += [f"beside {_numbers(step.overlaps)}"] if step.overlaps else []
    notes += fork_notes(step, forked=forked)
    first.append(Piece("  " + " · ".join(notes), DIM))
    if step.outcome != "ok":
        first.append(Piece(f"  {step.outcome.replace('_', ' ')}", BAD if step.outcome not in ("abandoned", "deferred") else "yellow"))
    if graded and step.grade != "exact":
        first.append(Piece(f"  [{GRADE_WORDS[step.grade]}]", _GRADE_STYLES[step.grade]))
    lines = [first]
    margin = " " * (number + 5) + pad
    for sign, text, style in _told(step):
        lines.append([Piece(f"{margin}{sign} ", DIM), Piece(text, style)])
    return lines


def _asker(step: Step) -> str | None:
    if step.requested_by is not None:
        return f"by {step.requested_by}"
    return None if step.requested_in is None else f"in run {safe(short_id(step.requested_in))}"


def _called(step: Step) -> str:
    arguments = step.input.get("arguments") if isinstance(step.input, dict) else None
    if step.kind in ("model_call", "agent") or arguments is None:
        return safe(step.name)
    return call_text(step.name, arguments)


def _told(step: Step) -> Iterable[tuple[str, str, str]]:
    """What came out of a step: sign, text, style."""
    output = step.output if isinstance(step.output, dict) else {}
    for text in _said(output):
        yield "→", short(text, 120), ""
    for asked in asked_for(output):
        yield "→", call_text(f"asks for {asked.name}", asked.arguments), ""
    if "result" in output:
        yield "→", short(output["result"], 120), ""
    if step.error is not None:
        yield "✗", _error_text(step.error), BAD
    if isinstance(step.decision, dict):
        reason = step.decision.get("reason")
        yield "•", f"decided: {safe(str(step.decision.get('outcome')))}{f', {short(reason)}' if reason else ''}", ""


def _said(output: Json) -> Iterable[str]:
    """The texts of the messages in a view of a model call."""
    messages = output.get("messages")
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == "text" and part.get("content"):
                content = part["content"]
                yield content if isinstance(content, str) else json_text(content)


def _error_text(error: Json) -> str:
    if not isinstance(error, dict):
        return short(error, 200)
    kind, message = error.get("type"), error.get("message")
    words = [safe(str(kind))] if kind else []
    if message:
        text = str(message)
        words.append(safe(text[:200]) + (f"… ({size(len(text.encode('utf-8', 'surrogatepass')))})" if len(text) > 200 else ""))
    return ": ".join(words) or "failed"


def _tokens(steps: Sequence[Step]) -> str:
    asked = [step.usage["input_tokens"] for step in steps if "input_tokens" in step.usage]
    said = [step.usage["output_tokens"] for step in steps if "output_tokens" in step.usage]
    if not said:
        return f"{sum(asked)} tokens in" if asked else ""
    return f"{sum(asked)} tokens in, {sum(said)} out" if asked else f"{sum(said)} tokens out"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) if len(numbers) <= 8 else f"{', '.join(map(str, numbers[:8]))} and {len(numbers) - 8} more"


def _reason_lines(reasons: Sequence[Reason]) -> list[Line]:
    lines: list[Line] = [[]] if reasons else []
    for reason in reasons[:REASONS_SHOWN]:
        where = "" if reason.step is None else f"step {reason.step}: "
        lines.append([Piece(f"  {where}", DIM), Piece(safe(reason.detail)), Piece(f"  ({reason.code})", DIM)])
    if len(reasons) > REASONS_SHOWN:
        lines.append([Piece(f"  and {len(reasons) - REASONS_SHOWN} more; --json lists all", DIM)])
    return lines


# ---- one step, whole ---------------------------------------------------------------------------------------------


def render_step(step: Step, *, colour: bool | None = None) -> str:
    """Everything that is known about a step, nothing shortened."""
    lines: list[Line] = [
        [Piece(f"step {step.seq}  ", LOUD), Piece(f"{step.kind.replace('_', ' ')}  ", DIM), Piece(safe(step.name), LOUD)],
    ]
    facts: dict[str, str | None] = {
        "outcome": step.outcome,
        "grade": GRADE_WORDS[step.grade],
        "started": moment(step.started_ns),
        "took": duration(step.started_ns, step.ended_ns),
        "agent": step.agent,
        "call id": step.call_id,
        "inside": None if step.parent_seq is None else f"step {step.parent_seq}",
        "asked for by": None if step.requested_by is None else f"step {step.requested_by}",
        "asked in": None if step.requested_in is None else f"run {step.requested_in}",
        "attempt": None if step.attempt == 1 else str(step.attempt),
        "retry of": None if step.retry_of is None else f"step {step.retry_of}",
        "beside": ", ".join(map(str, step.overlaps)) or None,
        "tokens": ", ".join(f"{kind} {count}" for kind, count in step.usage.items()) or None,
        "effect": step.effect,
        "action id": step.action_id,
        "target": step.target,
        "fork": " · ".join(fork_notes(step)) or None,
        "path": step.path,
        "span": f"{step.span_id} in trace {step.trace_id}",
        "read as": step.dialect,
    }
    lines += [[Piece(f"  {name:<13}", DIM), Piece(safe(value))] for name, value in facts.items() if value is not None]
    for reason in step.reasons:
        lines.append([Piece("  because      ", DIM), Piece(safe(reason.detail)), Piece(f"  ({reason.code})", DIM)])
    for title, value in (
        ("error", step.error),
        ("decision", step.decision),
        ("resources", list(step.resources) or None),
        ("versions", dict(step.versions) or None),
        ("input", step.input),
        ("output", step.output),
    ):
        if value is not None:
            lines += _section(title, json_text(value, indent=2))
    if step.wire is not None:
        lines += _wire_lines(step.wire)
    return rendered(lines, colour)


def _section(title: str, text: str) -> list[Line]:
    return [[], [Piece(title, LOUD)], *([Piece(f"  {line}")] for line in safe_lines(text).split("\n"))]


def _wire_lines(wire: Wire) -> list[Line]:
    status = "no response" if wire.status is None else f"{wire.status}"
    lines = _section("on the wire", f"{wire.method} {wire.url}")
    lines += [[Piece(f"  {safe(name)}: {safe(value)}", DIM)] for name, value in wire.request_headers]
    lines += _body_lines(wire.request_body)
    end = "whole" if wire.complete else "stopped before its end"
    chunks = _count(len(wire.chunks), "chunk")
    lines += [[], [Piece(f"  {status}", LOUD), Piece(f"  {size(len(wire.response_body))} in {chunks}, {end}", DIM)]]
    lines += [[Piece(f"  {safe(name)}: {safe(value)}", DIM)] for name, value in wire.response_headers]
    return lines + _body_lines(wire.response_body)


def _body_lines(body: bytes) -> list[Line]:
    if not body:
        return []
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return [[Piece(f"  {size(len(body))} that are no text", DIM)]]
    return [[Piece(f"  {line}")] for line in safe_lines(text).split("\n")]


# ---- trees ---------------------------------------------------------------------------------------------


def render_tree(records: Iterable[Record], *, colour: bool | None = None) -> str:
    """All spans as trees, each under its parent, with what each was read as, which step it is part of, what is wrong about its place."""
    forest = build(records)
    readings = read_spans(forest)
    elsewhere = notes(forest, readings)
    lines: list[Line] = []
    trace = ""
    pending = [(key, 0) for key in sorted(forest.roots, key=lambda key: (key.trace_id, forest.spans[key].start_ns, key))][::-1]
    while pending:
        key, depth = pending.pop()
        if key.trace_id != trace:
            trace = key.trace_id
            lines += [[Piece("trace ", DIM), Piece(safe(trace), LOUD)]]
        reading = readings[key]
        kind = reading.draft.kind.replace("_", " ") if reading.draft is not None else ""
        told = [kind, reading.dialect or "", elsewhere.get(key, "")] if kind else []
        lines.append(_span_line(forest, key, depth, ", ".join(safe(text) for text in told if text)))
        inside = sorted(forest.children.get(key, ()), key=lambda child: (forest.spans[child].start_ns, child))
        pending += [(child, depth + 1) for child in reversed(inside)]
    return rendered(lines, colour) if lines else "no spans"


def _span_line(forest: Forest, key: SpanKey, depth: int, read_as: str) -> Line:
    span = forest.spans[key]
    shown = "  " * min(depth, _INDENT_LIMIT) + (f"({depth}) " if depth > _INDENT_LIMIT else "")
    line = [Piece(f"  {shown}"), Piece(safe(span.name) or "(no name)", BAD if span.status == STATUS_ERROR else ""), Piece("  ")]
    line.append(Piece(f"{safe(span.span_id)} · {duration(span.start_ns, span.end_ns)}{f' · {read_as}' if read_as else ''}", DIM))
    if key in forest.orphans:
        line.append(Piece(f"  parent {safe(forest.orphans[key])} is not here", "yellow"))
    if key in forest.cycles:
        line.append(Piece("  its parent is inside it", "yellow"))
    if span.status == STATUS_ERROR:
        line.append(Piece(f"  error{': ' + safe(span.status_message[:100]) if span.status_message else ''}", BAD))
    return line
