"""The result of a re-execution as text for people."""

from collections.abc import Sequence

from rich.text import Text

from spanreplay.replay.ledger import Difference
from spanreplay.replay.model import GRADE_ORDER, GRADE_WORDS, Run
from spanreplay.replay.reports.text import escape, plain_or_styled
from spanreplay.replay.verdict import Verdict


def render_verdict(verdict: Verdict, runs: Sequence[Run]) -> str:
    """What was answered, what differs, what was refused, and what was not judged."""
    lines: list[Text] = []
    answered = f"{verdict.matched} of {verdict.recorded} recorded steps answered calls"
    if verdict.covered:
        answered += f", {verdict.covered} ran inside an answered tool"
    if verdict.matched_by_input:
        answered += f"; {verdict.matched_by_input} matched by input, as the caller could not be known"
    if verdict.order_relaxed:
        answered += f"; {verdict.order_relaxed} finished out of the recorded order"
    lines.append(Text(answered))
    for difference in verdict.differences:
        lines.extend(_difference(difference))
    for refusal in verdict.refusals:
        text = f"refused: {refusal.get('action')} {refusal.get('target')}"
        if refusal.get("where") not in (None, "None"):
            text += f"  at {refusal['where']}"
        lines.append(Text(escape(text), style="red"))
        if str(refusal.get("action", "")).startswith(("write", "create", "open", "sqlite", "delete")):
            lines.append(Text(escape(f"         if the command may write there: --allow-write {refusal.get('target')}")))
    for notice in verdict.notices:
        lines.append(Text(escape(f"note: {notice.get('action')} {notice.get('target')} was refused (a known probe, or an import)"), style="dim"))
    if verdict.telemetry_dropped:
        lines.append(Text(f"note: {verdict.telemetry_dropped} telemetry connections were dropped", style="dim"))
    if verdict.processes == 0:
        lines.append(Text("nothing was replayed", style="red"))
    else:
        lines.append(Text(_count(len(verdict.differences)), style="green" if not verdict.differences else "red"))
        if runs:
            worst = max((r.grade for r in runs), key=GRADE_ORDER.index)
            lines.append(Text(f"the record {GRADE_WORDS[worst] if worst in ('exact', 'semantic') else 'is ' + GRADE_WORDS[worst]}"))
        lines.append(Text(f"isolation: {verdict.isolation}", style="dim"))
    return plain_or_styled(lines)


def _count(number: int) -> str:
    return f"{number} difference{'' if number == 1 else 's'}"


def _difference(difference: Difference) -> list[Text]:
    place = f"step {difference.step}" if difference.step is not None else "not in the record"
    lines = [Text(escape(f"difference at {place}: {difference.name}"), style="bold red")]
    if difference.field is not None:
        lines.append(Text(escape(f"  {difference.field}")))
        lines.append(Text(escape(f"    recorded: {difference.recorded}")))
        lines.append(Text(escape(f"    actual:   {difference.actual}")))
    elif difference.actual is not None:
        lines.append(Text(escape(f"    actual:   {difference.actual}")))
    if difference.detail:
        lines.append(Text(escape(f"  {difference.detail}")))
    if difference.diff:
        lines.extend(Text(escape(f"    {line}")) for line in difference.diff.splitlines()[2:14])
    if difference.cause:
        lines.append(Text(escape(f"  cause: {difference.cause}")))
    if difference.where:
        lines.append(Text(escape(f"  called at {difference.where}"), style="dim"))
    return lines
