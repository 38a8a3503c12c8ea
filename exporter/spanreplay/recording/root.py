"""The span of a recorded command: written when it begins, closed when it ends, so that even a killed command is a run."""

import os
import time
from collections.abc import Mapping

from spanreplay.content.canonical import canonical_json, digest
from spanreplay.content.redaction import Redactor
from spanreplay.exporter.convert import Converter
from spanreplay.exporter.writer import Writer
from spanreplay.recording.definition import chosen_hash_seed, definition, marks, program
from spanreplay.recording.place import Place
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import KIND_INTERNAL, STATUS_ERROR, STATUS_UNSET, Resource, Scope, SpanRecord, Value

_SCOPE = Scope(name=names.SCOPE_NAME)


def open_root(
    writer: Writer, place: Place, *, redactor: Redactor, resource: Resource, process_id: str, seed: str, attributes: Mapping[str, Value]
) -> None:
    """Write that a command has begun.

    Args:
        writer: where to.
        place: of the command's top process.
        redactor: for its arguments; its policy is kept with the run.
        resource: this process.
        process_id: its ``spanreplay.process.id``.
        seed: what its randomness is made from.
        attributes: of the session; on the root as on every step.
    """
    text, name = definition(redactor), redactor.name(program())
    writer.open_span(
        SpanRecord(
            trace_id=place.trace_id,
            span_id=place.span_id,
            parent_span_id=place.parent_span_id,
            name=f"command {name}",
            kind=KIND_INTERNAL,
            start_ns=time.time_ns(),
            attributes={
                names.RUN_ID: place.command_run,
                names.RUN_ROOT: True,
                names.RUN_COMMAND: True,
                names.RUN_COMMAND_ID: place.command_id,
                names.RUN_NAME: name,
                names.RUN_DEFINITION: text,
                names.RUN_DEFINITION_DIGEST: digest(text),
                names.RUN_VARIABLES: canonical_json(marks(os.environ, redactor)),
                names.RUN_REDACTION: redactor.policy.to_json(),
                names.PROCESS_ID: process_id,
                names.RUN_SEED: seed,
                **({names.RUN_HASH_SEED: hash_seed} if (hash_seed := chosen_hash_seed()) else {}),
                **Converter(redactor).attributes(attributes),
            },
            resource=resource,
            scope=_SCOPE,
        )
    )


def close_root(writer: Writer, place: Place, *, exit_code: int | None) -> None:
    """Write that a command has ended.

    Args:
        writer: where to.
        place: of the command's top process.
        exit_code: as the operating system has it; ``None`` if it is not known here.
    """
    # Again, for a command whose beginning is lost.
    attributes: dict[str, Value] = {
        names.RUN_ID: place.command_run,
        names.RUN_ROOT: True,
        names.RUN_COMMAND: True,
        names.RUN_COMMAND_ID: place.command_id,
    }
    if exit_code is not None:
        attributes[names.RUN_EXIT_CODE] = exit_code
    writer.close_span(
        place.trace_id,
        place.span_id,
        end_ns=time.time_ns(),
        status=STATUS_ERROR if exit_code else STATUS_UNSET,
        status_message=f"exit code {exit_code}" if exit_code else "",
        attributes=attributes,
    )
