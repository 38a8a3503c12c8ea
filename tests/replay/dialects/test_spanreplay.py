import base64
import json
from typing import Any

import pytest

from fixtures.runs.spans import RUN, asking, digests, own, own_root, said, span, wired
from spanreplay.boundary.call import OutcomeName
from spanreplay.content.codec import encode
from spanreplay.replay.dialects.spanreplay import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord, Value


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def step(kind: str = "tool_call", end: int | None = -1, dropped: int = 0, **attributes: Value) -> StepDraft:
    named = {getattr(a, name): value for name, value in attributes.items()}
    return read(own(2, 1, kind, seq=3, end=end, attributes=named, dropped_attributes=dropped))


def codes(draft: StepDraft) -> list[str]:
    return [reason.code for reason in draft.reasons]


# ---- typed values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [{"ok": True}, 0, False, "", [], None, 0.0, "0", "null", {"$t": 1}, (1, 2), b"\xff"])
def test_every_result_keeps_its_type(result: Any) -> None:  # B17
    typed = encode(result)
    draft = step(GEN_AI_TOOL_CALL_ARGUMENTS="{}", STEP_RESULT=typed.text)
    assert draft.typed_result == typed.text
    assert draft.grade == "exact"
    assert draft.output is not None
    assert "result" in draft.output


def test_the_standard_attribute_is_the_typed_text_where_ours_is_absent() -> None:
    draft = step(GEN_AI_TOOL_CALL_ARGUMENTS='{"q": 1}', GEN_AI_TOOL_CALL_RESULT="0")
    assert (draft.typed_input, draft.typed_result) == ('{"q": 1}', "0")
    assert (draft.input, draft.output) == ({"arguments": {"q": 1}}, {"result": 0})


def test_our_attribute_wins_over_its_plain_view() -> None:
    typed = encode((1, 2))
    draft = step(STEP_INPUT=typed.text, GEN_AI_TOOL_CALL_ARGUMENTS="[1,2]", STEP_RESULT="null")
    assert draft.typed_input == typed.text
    assert draft.input == {"arguments": [1, 2]}, "people see it without type tags"
    assert draft.output == {"result": None}


def test_what_a_stream_gave_is_its_result() -> None:
    draft = step(STEP_INPUT="{}", STEP_ITEMS='["a","b"]', STEP_OUTCOME="abandoned")
    assert draft.typed_items == '["a","b"]'
    assert draft.output == {"result": ["a", "b"]}
    assert draft.grade == "exact"


def test_a_raised_exception_is_an_answer() -> None:
    draft = step(STEP_INPUT="{}", STEP_OUTCOME="error", STEP_ERROR='{"$t":"builtins:ValueError"}', ERROR_TYPE="ValueError")
    assert (draft.outcome, draft.grade) == ("error", "exact")
    assert draft.error == {"type": "ValueError", "message": None}
    assert draft.typed_error == '{"$t":"builtins:ValueError"}'


@pytest.mark.parametrize("outcome", ["cancelled", "rejected", "deferred", "interrupted", "abandoned"])
def test_some_outcomes_need_no_answer(outcome: OutcomeName) -> None:
    draft = step(STEP_INPUT="{}", STEP_OUTCOME=outcome)
    assert (draft.outcome, draft.grade) == (outcome, "exact")


def test_everything_named_is_read() -> None:
    draft = step(
        GEN_AI_TOOL_CALL_ID="c1", STEP_INPUT="1", STEP_RESULT="2", STEP_EFFECT="write", STEP_ACTION_ID="act", STEP_TARGET="prod",
        STEP_PATH="a/b", STEP_RESOURCES='[{"uri":"x"}]', DECISION='{"outcome":"allow"}', STEP_REQUESTED_BY="aa", STEP_RETRY_OF="bb",
        STEP_PARENT="cc", STEP_ATTEMPT=3, GEN_AI_AGENT_NAME="helper", GEN_AI_CONVERSATION_ID="s", TOOL_VERSION="2",
        TOOL_SCHEMA_DIGEST="sha256:1", PROMPT_DIGEST="sha256:2", CODE_COMMIT="abc", STEP_NAME="pay", GEN_AI_TOOL_NAME="pay",
    )  # fmt: skip
    assert (draft.name, draft.call_id, draft.effect, draft.action_id, draft.target, draft.path) == (
        "pay",
        "c1",
        "write",
        "act",
        "prod",
        "a/b",
    )
    assert (draft.requested_by_span, draft.retry_of_span, draft.parent_span, draft.attempt) == ("aa", "bb", "cc", 3)
    assert (draft.process, draft.seq_start, draft.seq_end) == ("p1", 3, 4)
    assert (draft.resources, draft.decision) == (({"uri": "x"},), {"outcome": "allow"})
    assert draft.versions == {
        "tool": {"name": "pay", "version": "2", "schema_digest": "sha256:1"},
        "prompt": {"digest": "sha256:2"},
        "code": {"commit": "abc"},
    }


def test_a_kind_of_a_later_version_is_no_step() -> None:
    assert DIALECT.read(own(2, kind="dream"), ()) is None


# ---- the wire --------------------------------------------------------------------------------------------------------


def model(**attributes: Value) -> StepDraft:
    return read(own(2, 1, "model_call", seq=3, attributes={**wired(), **attributes}))


def test_an_exchange_is_kept_to_the_byte() -> None:
    body = b"\x1f\x8b\x00\xff"
    draft = model(
        **{
            a.WIRE_RESPONSE_BODY: base64.b64encode(body).decode(),
            a.WIRE_RESPONSE_BODY_ENCODING: "base64",
            a.WIRE_RESPONSE_CHUNKS: "[[1,10],[3,20]]",
            a.WIRE_REQUEST_BODY: "ü\ud800",
        }
    )
    wire = draft.wire
    assert wire is not None
    assert (wire.method, wire.status, wire.provider, wire.complete) == ("POST", 200, "openai.chat", True)
    assert (wire.response_body, wire.chunks) == (body, ((1, 10), (3, 20)))
    assert wire.request_body == "ü\ud800".encode("utf-8", "surrogatepass")
    assert wire.request_headers == (("content-type", "application/json"),)
    assert draft.grade == "exact"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({a.WIRE_RESPONSE_COMPLETE: False}, "incomplete"),
        ({a.WIRE_RESPONSE_COMPLETE: False, a.STEP_OUTCOME: "abandoned"}, "exact"),
        ({a.WIRE_RESPONSE_COMPLETE: False, a.STEP_OUTCOME: "error", a.STEP_ERROR: "{}"}, "exact"),
        ({a.WIRE_RESPONSE_COMPLETE: False, a.STEP_OUTCOME: "error"}, "incomplete"),
        ({a.WIRE_RESPONSE_BODY: "not base64!", a.WIRE_RESPONSE_BODY_ENCODING: "base64"}, "incomplete"),
        ({a.WIRE_RESPONSE_BODY_ENCODING: "rot13"}, "incomplete"),
        ({a.WIRE_RESPONSE_CHUNKS: "[[99,1]]"}, "incomplete"),
        ({a.WIRE_RESPONSE_HEADERS: '[["a"]]'}, "incomplete"),
    ],
)
def test_an_exchange_that_is_not_whole_is_incomplete(changed: dict[str, Value], expected: str) -> None:
    assert model(**changed).grade == expected


def test_a_refused_connection_is_exact() -> None:
    attributes = {k: v for k, v in wired().items() if "response" not in k}
    draft = read(own(2, 1, "model_call", seq=3, attributes={**attributes, a.STEP_OUTCOME: "error", a.STEP_ERROR: "{}"}))
    assert draft.wire is not None
    assert (draft.wire.status, draft.wire.response_body, draft.grade) == (None, b"", "exact")


def test_a_span_that_was_exported_as_a_view_replays_by_meaning() -> None:
    draft = step("model_call", GEN_AI_INPUT_MESSAGES=said("q"), GEN_AI_OUTPUT_MESSAGES=asking(("c", "f", {})), GEN_AI_REQUEST_MODEL="m")
    assert (draft.grade, codes(draft)) == ("semantic", ["wire-absent"])
    assert draft.input["messages"][0]["role"] == "user"
    assert draft.output["messages"][0]["parts"][0]["name"] == "f"


def test_a_span_with_names_only_is_structure() -> None:
    assert step("model_call").grade == "structure"
    assert step().grade == "structure"


# ---- evidence --------------------------------------------------------------------------------------------------------


def test_a_step_that_never_ended_is_unknown() -> None:
    draft = step(end=None, STEP_INPUT="{}", STEP_OUTCOME=None)
    assert (draft.outcome, draft.grade) == ("unknown", "incomplete")
    assert "never-ended" in codes(draft)


@pytest.mark.parametrize("prefix", ["", "sha256:"])
def test_a_cut_value_is_proved_by_its_digest(prefix: str) -> None:
    whole = {a.STEP_INPUT: "{}", a.STEP_RESULT: '"0123456789"'}
    proofs = json.loads(digests(whole, *whole))
    proofs = {name: [prefix + sha, count] for name, (sha, count) in proofs.items()}
    good = read(own(2, attributes={**whole, a.STEP_DIGESTS: json.dumps(proofs)}))
    assert good.grade == "exact"
    cut = read(own(2, attributes={**whole, a.STEP_RESULT: '"0123', a.STEP_DIGESTS: json.dumps(proofs)}))
    assert cut.grade == "incomplete"
    (reason,) = cut.reasons
    assert reason.code == "cut"
    for word in (a.STEP_RESULT, "12 bytes", "found 5"):
        assert word in reason.detail


@pytest.mark.parametrize("name", [a.STEP_INPUT, a.STEP_RESULT, a.STEP_ITEMS])
def test_a_cut_value_is_seen_without_digests_too(name: str) -> None:
    draft = read(own(2, attributes={a.STEP_INPUT: "1", a.STEP_RESULT: "null", name: '{"a": "tex'}))
    assert (draft.grade, codes(draft)) == ("incomplete", ["cut"])


def test_a_cut_view_beside_a_whole_typed_result_is_not_needed() -> None:
    assert step(STEP_INPUT="1", STEP_RESULT="null", GEN_AI_TOOL_CALL_RESULT='{"a": "tex').grade == "exact"
    model_step = step("model_call", GEN_AI_INPUT_MESSAGES='[{"role":', GEN_AI_OUTPUT_MESSAGES="[]")
    assert (model_step.grade, model_step.input["messages"]) == ("incomplete", None)


def test_content_that_was_left_off_the_span_is_no_damage() -> None:
    whole = {**wired(), a.GEN_AI_INPUT_MESSAGES: said("q"), a.GEN_AI_OUTPUT_MESSAGES: said("a", "assistant")}
    proof = digests(whole, a.WIRE_RESPONSE_BODY, a.GEN_AI_INPUT_MESSAGES)
    view = {name: value for name, value in whole.items() if not name.startswith(a.WIRE_PREFIX)}
    draft = read(own(2, 1, "model_call", attributes={**view, a.STEP_DIGESTS: proof}))
    assert draft.grade == "semantic"
    assert {"left-off-span", "wire-absent"} == set(codes(draft))


def test_a_plain_view_of_typed_arguments_is_by_meaning_only() -> None:
    proof = digests({a.STEP_INPUT: encode((1,)).text}, a.STEP_INPUT)
    draft = step(GEN_AI_TOOL_CALL_ARGUMENTS="[1]", GEN_AI_TOOL_CALL_RESULT="1", STEP_DIGESTS=proof)
    assert draft.grade == "semantic"


@pytest.mark.parametrize(
    ("attribute", "grade", "code"),
    [
        (a.STEP_RESULT, "semantic", "redacted-result"),
        (a.WIRE_RESPONSE_BODY, "semantic", "redacted-result"),
        (a.STEP_ITEMS, "semantic", "redacted-result"),
        (a.STEP_INPUT, "exact", "redacted-input"),
        (a.WIRE_REQUEST_BODY, "exact", "redacted-input"),
        (a.WIRE_REQUEST_HEADERS, "exact", "redacted-header"),
        (a.WIRE_RESPONSE_HEADERS, "exact", "redacted-header"),
    ],
)
def test_redaction_lowers_the_grade_of_answers_only(attribute: str, grade: str, code: str) -> None:
    draft = step(STEP_INPUT="1", STEP_RESULT="2", STEP_REDACTED=json.dumps({attribute: 2}))
    assert (draft.grade, codes(draft)) == (grade, [code])
    assert attribute in draft.reasons[0].detail


@pytest.mark.parametrize(
    ("said", "url", "grade"),
    [
        ("timed out", "https://api.example.com/v1", "exact"),
        ("timed out", "https://api.example.com/v1?key=%5Bredacted:query:0123abcd%5D", "exact"),
        ("key [redacted:token:0123abcd] is not valid", "https://api.example.com/v1", "semantic"),
    ],
)
def test_the_credentials_of_the_request_that_an_error_carries_are_nothing_that_an_agent_gets(said: str, url: str, grade: str) -> None:
    request = {"method": "POST", "url": url, "headers": [["Authorization", "Bearer [redacted:bearer:0123abcd]"]], "content": None}
    state = {"_request": {"$t": "request", "c": "httpx", "v": request}}
    error = {"$t": "httpx:ReadTimeout", "k": "exception", "v": {"message": said, "args": [said], "state": state}}
    text = json.dumps(error)
    assert step(STEP_INPUT="1", STEP_ERROR=text, STEP_REDACTED=json.dumps({a.STEP_ERROR: text.count("redacted:")})).grade == grade


def test_lossy_values_replay_by_meaning() -> None:
    draft = step(STEP_INPUT="1", STEP_RESULT="2", STEP_LOSSY='["spanreplay.result"]')
    assert (draft.grade, codes(draft)) == ("semantic", ["lossy"])


def test_dropped_attributes_are_missing_evidence() -> None:
    assert step(dropped=1, STEP_INPUT="1", STEP_RESULT="2").grade == "incomplete"


# ---- the run ---------------------------------------------------------------------------------------------------------


def test_a_run_root_tells_the_run_and_is_no_step() -> None:
    root = own_root(
        1,
        seq=1,
        attributes={
            a.RUN_DEFINITION: '{"argv":["a.py"],"versions":{"dependencies":{"openai":"3"}}}',
            a.RUN_INPUT: encode((1,)).text,
            a.RUN_OUTPUT: '"done"',
            a.RUN_PATH: "main",
            a.RUN_COMMAND_ID: "cmd",
            a.RUN_COMMAND: True,
            a.RUN_EXIT_CODE: 3,
            a.RUN_REDACTION: '{"salt":"x"}',
            a.RUN_UNTAPED: '["sqlite3.connect"]',
            a.RUN_ARTIFACTS: '[{"name":"out.txt"}]',
            a.GEN_AI_AGENT_VERSION: "1.2",
            a.STEP_OUTCOME: "error",
            a.ERROR_TYPE: "SystemExit",
            a.CODE_COMMIT: "abc",
        },
    )
    (run,) = build_runs([root, own(2, 1, "io", seq=3, attributes={a.STEP_INPUT: "1", a.STEP_RESULT: "2"})])
    assert (run.run_id, run.agent_name, run.agent_version, run.outcome) == (RUN, "helper", "1.2", "error")
    assert run.error == {"type": "SystemExit", "message": None}
    assert (run.input, run.output, run.typed_output) == ([1], "done", '"done"')
    assert (run.path, run.command_id, run.is_command, run.exit_code, run.redaction) == ("main", "cmd", True, 3, '{"salt":"x"}')
    assert run.untaped == ("sqlite3.connect",)
    assert run.artifacts == ({"name": "out.txt"},)
    assert (run.definition["argv"], run.versions.dependencies, run.versions.code) == (["a.py"], {"openai": "3"}, {"commit": "abc"})
    assert [step.kind for step in run.steps] == ["io"]
    assert run.grade == "exact"
    assert [reason.code for reason in run.grade_reasons] == ["untaped"]


def test_a_nested_agent_is_a_step_that_needs_no_answer() -> None:
    (run,) = build_runs(
        [own_root(1, seq=1), own(2, 1, "agent", seq=3), own(3, 2, "tool_call", seq=4, attributes={a.STEP_INPUT: "1", a.STEP_RESULT: "2"})]
    )
    assert [(step.kind, step.grade, step.parent_seq) for step in run.steps] == [("agent", "exact", None), ("tool_call", "exact", 1)]


def test_a_run_that_never_ended_is_incomplete() -> None:
    (run,) = build_runs([own_root(1, seq=1, end=None, attributes={a.STEP_OUTCOME: None})])
    assert (run.outcome, run.grade, run.ended_ns) == ("unknown", "incomplete", None)


def test_a_run_without_its_root_is_rebuilt() -> None:
    (run,) = build_runs([own(2, 1, seq=3, attributes={a.STEP_INPUT: "1", a.STEP_RESULT: "2"})])
    assert (run.run_id, run.grade, run.orphan_spans) == (RUN, "exact", 1)
    assert {reason.code for reason in run.grade_reasons} == {"no-root", "missing-parent"}


def test_other_spans_are_left_to_others() -> None:
    assert not DIALECT.claims(span(1, attributes={a.GEN_AI_OPERATION_NAME: "chat", a.RUN_ID: RUN}))
