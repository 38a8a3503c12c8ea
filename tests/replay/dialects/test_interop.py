"""Single spans that other projects captured: whose dialect each is, and that nothing of it is lost."""

import json
from collections import Counter
from pathlib import Path

import pytest

from fixtures.runs.spans import span
from spanreplay.replay.model import Step
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.record import Scope

INTEROP = Path(__file__).parents[4] / "shared" / "material" / "interop"
pytestmark = pytest.mark.skipif(not INTEROP.is_dir(), reason="the shared material is not here")


def steps(name: str) -> tuple[Step, ...]:
    told = json.loads((INTEROP / f"{name}.json").read_text(encoding="utf-8"))
    attributes = told.get("attributes", told)
    (run,) = build_runs([span(1, name=told.get("spanName", "x"), attributes=attributes, scope=Scope(name=told.get("scopeName", "")))])
    return run.steps


@pytest.mark.parametrize(
    ("name", "dialect", "kind", "step"),
    [
        ("openinference-js/openinference_client_span_tool_calls", "openinference", "model_call", "gpt-4"),
        ("openinference-js/openinference_client_span_input_output_only", "openinference", "model_call", "gpt-4"),
        ("openinference-js/otel_genai_client_span_tool_calls", "gen_ai", "model_call", "gpt-4"),
        ("openinference-js/otel_genai_deprecated_client_span_tool_calls", "gen_ai", "model_call", "gpt-4"),
        ("openinference-js/otel_genai_tool_execution_span", "gen_ai", "tool_call", "get_weather"),
        ("langwatch/gemini-B.llm_call", "gemini_cli", "model_call", "gemini-3.1-flash-lite"),
    ],
)
def test_a_captured_span_is_a_step_with_its_content(name: str, dialect: str, kind: str, step: str) -> None:
    (found,) = steps(name)
    assert (found.dialect, found.kind, found.name, found.grade) == (dialect, kind, step, "semantic")
    assert found.input is not None
    assert found.output is not None


def test_spans_of_the_vercel_sdk_that_openinference_translates() -> None:
    captured = json.loads((INTEROP / "openinference-js" / "all-spans.json").read_text(encoding="utf-8"))
    records = [
        span(number, name=told["name"], attributes=told["attributes"], trace=f"{number:032x}", scope=Scope(name="ai"))
        for number, told in enumerate(captured, 1)
    ]
    kinds = Counter((step.kind, step.grade) for run in build_runs(records) for step in run.steps)
    assert kinds["model_call", "semantic"] == sum(told["name"].endswith((".doGenerate", ".doStream")) for told in captured)
