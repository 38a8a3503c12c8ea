"""A replay needs no key, but SDKs want to find one."""

from typing import Any

import pytest

from spanreplay.replay import Run
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.reexecution.credentials import needed_credentials
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import Resource, Scope, SpanRecord


def run_of(definition: str | None, provider: str, *, own: bool = True) -> list[Run]:
    told: dict[str, Any] = {names.GEN_AI_OPERATION_NAME: "chat", names.GEN_AI_PROVIDER_NAME: provider, names.GEN_AI_REQUEST_MODEL: "m"}
    root: dict[str, Any] = {names.GEN_AI_OPERATION_NAME: "invoke_agent", names.GEN_AI_AGENT_NAME: "a"}
    if own:
        told |= {names.STEP_KIND: "model_call", names.RUN_ID: "r" * 32, names.STEP_PATH: "model_call#0"}
        root |= {names.STEP_KIND: "agent", names.RUN_ID: "r" * 32, names.RUN_ROOT: True}
        root |= {names.RUN_DEFINITION: definition} if definition is not None else {}
    spans = [(1, None, root), (2, 1, told)]
    return build_runs(
        SpanRecord(
            trace_id="a" * 32,
            span_id=f"{number:016x}",
            parent_span_id=None if parent is None else f"{parent:016x}",
            name="span",
            kind=1,
            start_ns=number,
            end_ns=number + 1,
            attributes=attributes,
            resource=Resource(),
            scope=Scope(name=names.SCOPE_NAME if own else "other"),
        )
        for number, parent, attributes in spans
    )


@pytest.mark.parametrize("definition", [None, '{"instructions": "Be brief."}'])
def test_a_run_without_its_command_wants_the_key_of_its_provider(definition: str | None) -> None:
    assert needed_credentials(run_of(definition, "anthropic"), {}) == {"ANTHROPIC_API_KEY"}


def test_a_command_says_itself_what_it_had() -> None:
    assert needed_credentials(run_of('{"credentials": ["MY_TOKEN"]}', "openai"), {}) == {"MY_TOKEN"}


def test_a_run_of_others_wants_the_key_of_its_provider_unless_there_is_one() -> None:
    runs = run_of(None, "gcp.gemini", own=False)
    assert needed_credentials(runs, {}) == {"GOOGLE_API_KEY"}
    assert needed_credentials(runs, {"GEMINI_API_KEY": "k"}) == set()


def test_a_key_of_two_halves_is_wanted_whole() -> None:
    runs = run_of(None, "aws.bedrock", own=False)
    assert needed_credentials(runs, {}) == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    assert needed_credentials(runs, {"AWS_ACCESS_KEY_ID": "k"}) == set()
