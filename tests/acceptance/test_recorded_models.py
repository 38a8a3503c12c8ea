"""Agents on the real SDKs, talking to recorded model responses: recorded, carried to another store, re-executed from there."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from acceptance.commands import MATERIAL, NO_MATERIAL, WIRE, Desk, Done, agent, assert_equal
from support.cassette_server import CassetteServer, Listener, Recorded, read_cassette
from support.size import FULL


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A recording, and the agent it is for."""

    name: str
    api: str
    mode: str
    file: str
    calls: int
    """Tool calls in it."""
    more: Sequence[str] = ()
    """Other loops that can use it."""


CASES: Final = (
    Case(name="C40", api="chat", mode="plain", more=("async",), file="llm/test_tool_use_chain_of_two_calls.yaml", calls=2),
    Case(name="C44", api="responses", mode="stream", more=("astream",), file="llm/test_responses_tool_use_streaming.yaml", calls=1),
    Case(
        name="C46", api="responses", mode="async", more=("plain",), file="llm/test_responses_round_trips_encrypted_reasoning.yaml", calls=2
    ),
    Case(name="C04", api="messages", mode="async", more=("plain",), file="pydantic-ai/test_multiple_parallel_tool_calls.yaml", calls=4),
    Case(
        name="C52",
        api="messages",
        mode="stream",
        more=("astream",),
        file="crewAI/TestAnthropicToolCallStreaming.test_anthropic_streaming_emits_tool_call_events.yaml",
        calls=1,
    ),
    Case(name="C16", api="responses", mode="async", more=("plain",), file="pydantic-ai/test_openai_responses_model_retry.yaml", calls=2),
    Case(
        name="C19",
        api="responses",
        mode="plain",
        more=("async",),
        file="pydantic-ai/test_multimodal_tool_return_matrix[direct-url-audio-openai_responses].yaml",
        calls=1,
    ),
)
OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "chat/rivers/{}/chat-chain": ("plain", "async"),
    "chat/rivers/{}/chat-stream": ("stream", "astream"),
    "responses/rivers/{}/responses-reasoning": ("plain", "async"),
    "responses/rivers/{}/responses-stream": ("stream", "astream"),
    "responses/rivers/{}/responses-refused": ("plain", "async"),
    "messages/rivers/{}/messages-parallel": ("plain", "async"),
    "messages/rivers/{}/messages-stream": ("stream", "astream"),
}
needs_material = pytest.mark.skipif(not MATERIAL.is_dir(), reason=NO_MATERIAL)


def _record(desk: Desk, responses: Mapping[str, list[Recorded]], command: Sequence[str], server: CassetteServer) -> Done:
    for name, given in responses.items():
        server.serve(name, given)
    recorded = desk.record(command)
    assert recorded.code == 0, str(recorded)
    assert "replays exactly" not in recorded.err
    for name, given in responses.items():
        assert server.unserved(name) == 0, f"{name}: {recorded}"
        assert [path for each, path in server.requests if each == name] == [r.path.removeprefix("/openai") for r in given]
    return recorded


# ---- one recording, from the record to another store ----------------------------------------------------------------


@needs_material
@pytest.mark.parametrize("case", CASES if FULL else CASES[:1], ids=lambda case: case.name)
def test_a_recorded_agent_is_answered_from_another_store(case: Case, desk: Desk) -> None:
    """Same output, no tool body run, nobody asked, though the model is gone and the store knew nothing before."""
    given = read_cassette(MATERIAL / case.file)
    with CassetteServer() as server:
        command = agent(f"{case.api}_agent", server.url(case.name), case.name, case.mode)
        recorded = _record(desk, {case.name: given}, command, server)
        asked = len(server.requests)
    talk = json.loads(recorded.lines[0])
    assert talk["calls"] == _call_ids(given)
    assert len(talk["calls"]) == len(desk.marks) == case.calls
    assert asked == len(given)

    replayed = desk.replay(command, store=desk.carried_over())

    assert_equal(recorded, replayed)
    assert len(desk.marks) == case.calls
    assert len(server.requests) == asked


def _call_ids(responses: Sequence[Recorded]) -> list[str]:
    """Ids of the tool calls in recorded responses, found in their text alone."""
    found: dict[str, None] = {}
    for response in responses:
        texts = response.body.decode().splitlines() if "event-stream" in response.content_type else [response.body.decode()]
        for text in texts:
            line = text.removeprefix("data:").strip()
            if line.startswith("{"):
                found.update(dict.fromkeys(_ids_in(json.loads(line))))
    return list(found)


def _ids_in(value: Any) -> list[str]:
    if isinstance(value, list):
        return [i for each in value for i in _ids_in(each)]
    if not isinstance(value, dict):
        return []
    mine = {"function_call": value.get("call_id"), "function": value.get("id"), "tool_use": value.get("id")}.get(str(value.get("type")))
    return ([mine] if isinstance(mine, str) else []) + [i for each in value.values() for i in _ids_in(each)]


# ---- many runs in one process, every form they can be carried in -----------------------------------------------------


def _carried_over_and_replayed(desk: Desk, wanted: Mapping[str, Path], *, every_way: bool) -> list[dict[str, Any]]:
    """Record agents in one command; replay it from a store filled by OTLP JSON, ``every_way`` from one by protobuf and the file too."""
    responses = {}
    for each, file in wanted.items():
        _, _, mode, name = each.split("/")
        responses[f"{name}.{mode}"] = read_cassette(file)
    with CassetteServer() as server:
        command = agent("many_agents", f"http://127.0.0.1:{server.port}", *wanted)
        recorded = _record(desk, responses, command, server)
    marks = desk.marks
    assert len(recorded.lines) == len(wanted)

    sources: list[tuple[str | Path, Path]] = [("last", desk.carried_over("otlp-json"))]
    if every_way:
        sources += [("last", desk.carried_over("otlp-proto")), (desk.root / "run.otlp-json", desk.root / "no-store")]
    with Listener(server.port) as listener:
        for target, store in sources:
            assert_equal(recorded, desk.replay(command, store=store, target=target))
        assert listener.connections() == 0
    assert not (desk.root / "no-store").exists()
    assert desk.marks == marks
    return [json.loads(line) for line in recorded.lines]


@needs_material
def test_recorded_agents_in_one_process_are_answered_from_another_store(desk: Desk) -> None:
    """Every recording with its own loop, as runs of one command: same output, no tool body run, nobody asked."""
    wanted = {f"{case.api}/{case.name}/{case.mode}/{case.name}": MATERIAL / case.file for case in CASES}

    talks = _carried_over_and_replayed(desk, wanted, every_way=False)

    for case, talk in zip(CASES, talks, strict=True):
        assert talk["calls"] == _call_ids(read_cassette(MATERIAL / case.file)), case.name
        assert len(talk["calls"]) == case.calls
    assert len(desk.marks) == sum(case.calls for case in CASES)


@needs_material
@pytest.mark.skipif(not FULL, reason="runs at SPANREPLAY_TEST_SIZE=full")
def test_the_other_loops_replay_from_another_store(desk: Desk) -> None:
    """The recordings once more, each with the loop that it was not tested with above, as runs of one command."""
    wanted = {f"{c.api}/{c.name}/{mode}/{c.name}": MATERIAL / c.file for c in CASES for mode in c.more}
    _carried_over_and_replayed(desk, wanted, every_way=True)


def test_own_recordings_replay_from_json_protobuf_and_file(desk: Desk) -> None:
    """Interleaved deltas, equal calls side by side, an id used twice, sealed reasoning, a failing tool, HTTP 400."""
    wanted = {
        pattern.format(mode): WIRE / f"{pattern.rpartition('/')[2]}.yaml"
        for place, (pattern, modes) in enumerate(OWN.items())
        for mode in (modes if FULL else modes[place % 2 :][:1])
    }

    talks = dict(zip(wanted, _carried_over_and_replayed(desk, wanted, every_way=FULL), strict=True))

    for each, talk in talks.items():
        if each.endswith("refused"):
            assert talk["errors"] == [talk["errors"][0]]
            assert talk["errors"][0].startswith("openai.BadRequestError: Error code: 400")
        else:
            assert talk["final"] == "The Elbe and the Oder stand at 308 cm – steady; the gauge of the Weser is silent. ≈", each
            assert talk["errors"] == ["builtins.TimeoutError: gauge 45 does not answer"], each
            assert len(talk["calls"]) == 6
        sealed = [part for part in talk["reasoning"] if part.get("encrypted_content") or part.get("signature")]
        assert len(sealed) == {"responses": 1 if each.endswith("refused") else 2, "messages": 1, "chat": 0}[each.partition("/")[0]]
    chain = next(talk for each, talk in talks.items() if each.endswith("chat-chain"))
    assert chain["calls"].count("call_a") == 2
