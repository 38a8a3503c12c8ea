"""Contents that a limit cut where no JSON shows it: a text of just the size at which other values of the same records were cut."""

from collections.abc import Iterable, Iterator

from spanreplay.replay.inputs.limits import Limits
from spanreplay.replay.inputs.survey import Survey, texts_of
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reasons import CUT
from spanreplay.semconv.attributes import STEP_DIGESTS
from spanreplay.spans.record import SpanRecord


def limits_of(spans: Iterable[SpanRecord]) -> Limits:
    """The sizes at which values of some spans were cut; see :meth:`spanreplay.replay.inputs.survey.Survey.limits`."""
    survey = Survey()
    for span in spans:
        survey.see(span)
    return survey.limits()


def cut_contents(span: SpanRecord, draft: StepDraft, limits: Limits) -> list[Reason]:
    """Why a step is not whole: texts of its input and output that have the size of a limit, and that nothing else tells to be cut.

    Args:
        span: the step's.
        draft: what a dialect read of it.
        limits: what :func:`limits_of` gave.
    """
    if STEP_DIGESTS in span.attributes:  # these tell exactly
        return []
    told = {reason.field for reason in draft.reasons}
    found = [
        (text, reached)
        for text in texts_of(span)
        if text.name not in told and (reached := limits.reached(text.value, text.size)) is not None
    ]
    if not found:
        return []
    held = set(_texts(draft.input)) | set(_texts(draft.output))
    return [
        Reason(
            code=CUT,
            detail=f"{text.name} has just the size at which others end: {size} {unit} are left",
            field=text.name,
            size=size,
        )
        for text, (size, unit) in found
        if text.value in held
    ]


def _texts(value: Json) -> Iterator[str]:
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
