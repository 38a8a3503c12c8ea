"""The spans of runs, as they leave the store: with digests beside their content, so that what a back end cuts is provable."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from spanreplay.boundary.contents import content_digests
from spanreplay.content.canonical import canonical_json
from spanreplay.replay.inputs.source_losses import with_losses
from spanreplay.replay.model import Run
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import Record, SpanRecord


def of_runs(records: Iterable[Record], runs: Sequence[Run]) -> list[Record]:
    """The records of the traces that ``runs`` have spans in, with what is known to be lost of them."""
    traces = {t for run in runs for t in run.trace_ids}
    found = [with_digests(r) if isinstance(r, SpanRecord) else r for r in records if r.trace_id in traces]
    return with_losses(found, runs)


def with_digests(span: SpanRecord) -> SpanRecord:
    """The span with :data:`~spanreplay.semconv.attributes.STEP_DIGESTS`, where spanreplay recorded it and it has content."""
    if names.STEP_KIND not in span.attributes or names.STEP_DIGESTS in span.attributes:
        return span
    digests = content_digests(span.attributes)
    return replace(span, attributes={**span.attributes, names.STEP_DIGESTS: canonical_json(digests)}) if digests else span


def view_of(span: SpanRecord) -> SpanRecord:
    """The span without its wire content and without the code that ran, and with the names that viewers know: what people look at."""
    left_off = (names.RUN_CODE, names.RUN_VARIABLES)
    kept = {k: v for k, v in span.attributes.items() if not k.startswith(names.WIRE_PREFIX) and k not in left_off}
    written = kept.get(names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS)
    if written is not None:
        kept.setdefault(names.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS, written)
    return span if kept == span.attributes else replace(span, attributes=kept)
