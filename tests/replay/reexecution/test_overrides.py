"""What a fork changes of a request, API by API; which hosts it may ask; and how what is live reads back from its JSON."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from spanreplay.replay.reexecution.hosts import address, model_hosts
from spanreplay.replay.reexecution.options import Options
from spanreplay.replay.reexecution.overrides import rewrite
from spanreplay.replay.reexecution.policy import NOTHING, Decision, Fault, Policy, PolicyError, read_change

CHANGES = {"model": "other", "prompt": "Be brief.", "temperature": 0}
USER = {"role": "user", "content": "Go."}


@pytest.mark.parametrize(
    ("provider", "target", "body", "wanted_target", "wanted"),
    [
        (
            "openai.chat",
            "/v1/chat/completions?x=1",
            {"model": "m", "messages": [{"role": "developer", "content": "old"}, USER], "temperature": 1},
            "/v1/chat/completions?x=1",
            {"model": "other", "messages": [{"role": "developer", "content": "Be brief."}, USER], "temperature": 0},
        ),
        (
            "openai.chat",
            "/openai/deployments/m/chat/completions?api-version=1",
            {"messages": [USER]},
            "/openai/deployments/other/chat/completions?api-version=1",
            {"messages": [{"role": "system", "content": "Be brief."}, USER], "temperature": 0},
        ),
        (
            "openai.responses",
            "/v1/responses",
            {"model": "m", "input": [{"role": "system", "content": "old"}, USER]},
            "/v1/responses",
            {"model": "other", "input": [USER], "instructions": "Be brief.", "temperature": 0},
        ),
        (
            "anthropic.messages",
            "/v1/messages",
            {"model": "m", "system": [{"type": "text", "text": "old"}], "messages": [USER]},
            "/v1/messages",
            {"model": "other", "system": "Be brief.", "messages": [USER], "temperature": 0},
        ),
        (
            "gemini",
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            {"contents": [], "generationConfig": {"topK": 3}},
            "/v1beta/models/other:streamGenerateContent?alt=sse",
            {"contents": [], "generationConfig": {"topK": 3, "temperature": 0}, "systemInstruction": {"parts": [{"text": "Be brief."}]}},
        ),
        (
            "ollama",
            "/api/chat",
            {"model": "m", "messages": [USER]},
            "/api/chat",
            {"model": "other", "messages": [{"role": "system", "content": "Be brief."}, USER], "options": {"temperature": 0}},
        ),
        (
            "ollama",
            "/api/generate",
            {"model": "m", "prompt": "Go."},
            "/api/generate",
            {"model": "other", "prompt": "Go.", "system": "Be brief.", "options": {"temperature": 0}},
        ),
        (
            "cohere.chat",
            "/v2/chat",
            {"model": "m", "messages": [USER]},
            "/v2/chat",
            {"model": "other", "messages": [{"role": "system", "content": "Be brief."}, USER], "temperature": 0},
        ),
    ],
)
def test_model_prompt_and_parameters_are_put_where_the_api_has_them(
    provider: str, target: str, body: Mapping[str, Any], wanted_target: str, wanted: Mapping[str, Any]
) -> None:
    made_target, made = rewrite(CHANGES, provider)(target, json.dumps(body).encode())
    assert (made_target, json.loads(made)) == (wanted_target, wanted)


def test_any_field_can_be_set_and_taken_out() -> None:
    body = json.dumps({"model": "m", "seed": 7, "a": {"b": 1}}).encode()
    _, made = rewrite({"seed": None, "a.c": [1], "d.e": "ü", "result": "is of a tool"}, "openai.chat")("/x", body)
    assert json.loads(made) == {"model": "m", "a": {"b": 1, "c": [1]}, "d": {"e": "ü"}}


def test_a_number_leads_into_a_list() -> None:
    body = json.dumps({"messages": [{"content": "a"}, {"content": "b"}], "stop": ["x", "y"]}).encode()
    _, made = rewrite({"messages.1.content": "c", "stop.0": None}, "openai.chat")("/x", body)
    assert json.loads(made) == {"messages": [{"content": "a"}, {"content": "c"}], "stop": ["y"]}


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("messages.1.content", "messages is a list of 1 items, counted from 0, which has no 1"),
        ("messages.last", "which has no last"),
        ("messages.0.content.x", 'messages.0.content is "a", which has no x'),
        ("temperature.x", "temperature is 1, which has no x"),
        ("input.0.content", "there is no input"),
    ],
)
def test_nothing_is_replaced_on_the_way_to_a_place(place: str, told: str) -> None:
    body = json.dumps({"messages": [{"content": "a"}], "temperature": 1}).encode()
    with pytest.raises(PolicyError, match=told):
        rewrite({place: 1}, "openai.chat")("/x", body)


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b'"x"'])
def test_a_body_that_is_no_object_is_not_changed(body: bytes) -> None:
    with pytest.raises(PolicyError, match="wanted a JSON object"):
        rewrite(CHANGES, "openai.chat")("/x", body)


def test_a_signed_request_is_not_changed() -> None:
    with pytest.raises(PolicyError, match="signed"):
        rewrite(CHANGES, "aws.bedrock.converse")


def test_changes_are_json_or_text() -> None:
    texts = ("model=7", "prompt=null", "temperature=0", "stop=[1]", "user=ana", "x= ")
    assert [read_change(text)[1] for text in texts] == ["7", "null", 0, [1], "ana", " "]


@pytest.mark.parametrize(
    "text",
    ["result={bad", "result=text", "result=", "result=NaN", "temperature=NaN", "x=[1e999]", "x={bad", "x=", "model=", "model= ", "=1", "x"],
)
def test_a_change_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        read_change(text)


@pytest.mark.parametrize("text", ["5=done", "5=done:", "5=done:text", "5=done:NaN", "5=again:1", "x=again", "5"])
def test_a_decision_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        Decision.read(text)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://api.example.com/v1", ("api.example.com", 443)),
        ("http://127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("api.example.com", ("api.example.com", 0)),
        ("api.example.com:99", ("api.example.com", 99)),
        ("http://[::1]:7/", ("::1", 7)),
        ("http://x:port", None),
        ("", None),
    ],
)
def test_an_address_is_read_of_a_url(url: str, found: tuple[str, int] | None) -> None:
    assert address(url) == found


def test_hosts_of_models_are_told_by_the_environment() -> None:
    told = {"OPENAI_BASE_URL": "https://here/v1", "https_proxy": "http://proxy:3128", "OTHER_URL": "https://no", "OLLAMA_HOST": "box:1"}
    assert set(model_hosts((), told)) == {("here", 443), ("proxy", 3128), ("box", 1)}


def test_a_policy_reads_back_from_its_json() -> None:
    policy = Policy(
        run="r" * 32,
        at=3,
        live=("a",),
        stub=("b",),
        allow_effect=("c",),
        target="t",
        changes={"model": "m", "x": [1, None]},
        faults=(Fault(kind="slow", step=3, seconds=0.5),),
        decisions=(Decision.read('4=done:{"id": 1}'),),
    )
    options = Options(policy=policy, allow_connect=(("h", 1),))
    assert Options.from_json(json.loads(json.dumps(options.to_json()))) == options
    assert bool(policy)
    assert not NOTHING
