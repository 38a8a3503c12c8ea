"""What every provider must do, over all files found under providers/ and their fixtures of the same name."""

import json
import math
import pkgutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanreplay.instrumentation import _sse, providers
from spanreplay.instrumentation.provider import ModelResponse, Provider, by_name, recognise, registry
from spanreplay.semconv import attributes as names
from support.framings import FRAMINGS
from support.size import FULL

FIXTURES = Path(__file__).parents[2] / "fixtures" / "providers"
MODULES = sorted(module.name for module in pkgutil.iter_modules(providers.__path__))
TALKING = [name for name in MODULES if name != "embeddings"]
"""Those whose answer is messages."""
JSON_TYPE = "application/json"
QUIET = settings(
    max_examples=200 if FULL else 15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


class Case:
    """One provider and its fixtures."""

    def __init__(self, module: str) -> None:
        folder = FIXTURES / module
        self.expected: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
        self.body: dict[str, Any] = json.loads((folder / "request.json").read_text("utf-8"))
        self.request: dict[str, Any] = {**self.body, **self.expected.get("asked", {})}
        self.plain = (folder / "response.json").read_bytes()
        way = self.expected.get("stream", "sse")
        self.framing = FRAMINGS[way]
        self.stream = self.framing.load(folder / f"stream.{way}")
        self.error = (folder / "error.json").read_bytes()
        self.stream_error = self.framing.load(folder / f"stream_error.{way}")
        found = by_name(self.expected["name"])
        assert found is not None
        self.provider: Provider = found
        self.untold = set(self.expected.get("untold", ()))
        """Attributes that this API does not tell in a body."""

    def read(self, body: bytes, content_type: str = JSON_TYPE, status: int = 200) -> ModelResponse:
        return self.provider.response(status, content_type, body, self.request)

    def streamed(self, body: bytes) -> ModelResponse:
        return self.read(body, self.framing.TYPE)


CASES = {module: Case(module) for module in TALKING}


@pytest.fixture(params=TALKING)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def messages_of(response: ModelResponse) -> Any:
    return json.loads(str(response.attributes.get(names.GEN_AI_OUTPUT_MESSAGES, "[]")))


def check_attributes(attributes: Any) -> None:
    """Every value is one that a span takes and every (J) value is strict JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    for name, value in attributes.items():
        if isinstance(value, tuple):
            assert all(isinstance(item, str) for item in value)
        elif isinstance(value, str):
            value.encode()
            if name.endswith((".messages", ".definitions", ".system_instructions")):
                json.loads(value, parse_constant=refuse)
        elif isinstance(value, int):
            assert -(2**63) <= value < 2**63
        else:
            assert isinstance(value, float)
            assert math.isfinite(value)


# ---- what is a model call ----------------------------------------------------------------------------------------


def test_every_provider_has_a_test_file_and_is_in_the_registry() -> None:
    assert len(registry()) == len(MODULES)
    assert all((Path(__file__).parent / f"test_{module}.py").exists() for module in MODULES)


def test_recognised_on_any_host_and_prefix_by_path_and_body(case: Case) -> None:
    body = json.dumps(case.body).encode()
    for path in case.expected["paths"]:
        assert recognise("post", path, JSON_TYPE, body) == (case.provider, case.request), path
        assert recognise("GET", path, JSON_TYPE, body) is None
        assert not case.provider.matches("GET", path, case.body)
        assert recognise("POST", path, JSON_TYPE, b"{cut") is None
        assert recognise("POST", path, "multipart/form-data; boundary=x", body) is None
    for path in case.expected["other_paths"]:
        assert recognise("POST", path, JSON_TYPE, body) is None, path
        assert not case.provider.matches("POST", path, case.body)
    for field in case.expected["needed"]:
        rest = {key: value for key, value in case.body.items() if key != field}
        assert not case.provider.matches("POST", case.expected["paths"][0], rest), field


def test_a_body_is_not_parsed_for_another_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanreplay.instrumentation.provider.loads", lambda body: pytest.fail("parsed"))
    assert recognise("POST", "/v1/traces", JSON_TYPE, b'{"model": "m", "messages": []}') is None


# ---- responses ---------------------------------------------------------------------------------------------------


def test_request_view(case: Case) -> None:
    view = case.provider.request(case.request)
    check_attributes(view.attributes)
    assert view.model == case.request["model"] == view.attributes[names.GEN_AI_REQUEST_MODEL]
    assert view.stream is False
    assert view.attributes[names.GEN_AI_OPERATION_NAME] == case.expected.get("operation", "chat")
    assert view.attributes[names.GEN_AI_REQUEST_MAX_TOKENS] == 300
    assert case.provider.request({**case.request, "stream": True}).stream is True


@pytest.mark.parametrize("streamed", [False, True])
def test_response_plain_and_streamed(case: Case, streamed: bool) -> None:
    read = case.streamed(case.stream) if streamed else case.read(case.plain)
    check_attributes(read.attributes)
    assert (read.outcome, read.complete, read.error) == ("ok", True, None)
    assert messages_of(read) == case.expected["messages"]
    assert [[call.id, call.name, call.arguments] for call in read.tool_calls] == case.expected["tool_calls"]
    view = {key: list(value) if isinstance(value, tuple) else value for key, value in read.attributes.items()}
    assert view == {**case.expected["attributes"], names.GEN_AI_OUTPUT_MESSAGES: read.attributes[names.GEN_AI_OUTPUT_MESSAGES]}


@pytest.mark.parametrize("line_end", [b"\r\n", b"\r"])
def test_stream_with_other_line_ends_and_no_content_type(case: Case, line_end: bytes) -> None:
    if case.framing is not FRAMINGS["sse"]:
        assert case.read(case.stream, "") == case.streamed(case.stream)
        return
    stream = case.stream.replace(b"\n", line_end)
    assert case.read(stream, "") == case.streamed(case.stream)
    assert case.provider.terminal(stream)


def test_stream_cut_after_every_event(case: Case) -> None:
    blocks = case.framing.split(case.stream)
    read = case.streamed(case.stream)
    for length in range(len(blocks)):
        cut = b"".join(blocks[:length])
        part = case.streamed(cut)
        assert (part.outcome, part.complete) == ("ok", False), cut[-200:]
        assert not case.provider.terminal(cut)
        assert len(part.tool_calls) <= len(read.tool_calls)
        check_attributes(part.attributes)


def test_stream_cut_inside_every_event(case: Case) -> None:
    for place in range(1, len(case.stream.rstrip()), 37):
        part = case.streamed(case.stream[:place])
        assert (part.outcome, part.complete) == ("ok", False), case.stream[:place][-200:]
        assert not case.provider.terminal(case.stream[:place])


def test_terminal_needs_only_the_last_event(case: Case) -> None:
    assert case.provider.terminal(case.stream)
    assert case.provider.terminal(b"".join(case.framing.split(case.stream)[-2:]))
    assert case.provider.terminal(case.stream_error)
    assert not case.provider.terminal(b"")


def test_http_error(case: Case) -> None:
    read = case.read(case.error, status=404)
    assert (read.outcome, read.complete, read.error) == ("error", True, tuple(case.expected["error"]))
    assert read.attributes[names.ERROR_TYPE] == case.expected["error"][0]
    assert read.tool_calls == ()
    assert case.read(b"Bad Gateway", "text/html", 502).error == ("502", "Bad Gateway")
    assert case.read(b"", "", 503).error == ("503", "")
    assert case.read(b'{"detail": "no"}', status=422).error == ("422", '{"detail":"no"}')


def test_error_in_a_2xx(case: Case) -> None:
    assert case.read(case.error).error == tuple(case.expected.get("error_in_2xx", case.expected["error"]))
    read = case.streamed(case.stream_error)
    assert (read.outcome, read.error) == ("error", tuple(case.expected["stream_error"]))


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"id": "x"', b"[]", b"{}", b'"text"', b"[" * 100_000, b"\xff\xfe"])
def test_malformed(case: Case, body: bytes) -> None:
    read = case.read(body)
    assert read.outcome == "malformed"
    assert read.error is not None
    assert read.error[0] == "malformed"


def test_malformed_stream(case: Case) -> None:
    first, *rest = case.framing.split(case.stream)
    assert case.streamed(b"".join([first, case.framing.BROKEN, *rest])).outcome == "malformed"
    assert case.streamed(b"<html>Bad Gateway</html>").outcome == "malformed"
    assert case.streamed(case.plain) == case.read(case.plain), "a plain body with the wrong content type is still read"


# ---- messages back to the wire -----------------------------------------------------------------------------------


def render(case: Case, messages: Any, *, stream: bool, usage: dict[str, int] | None = None) -> tuple[str, bytes]:
    request = {"model": "m", "messages": [], "stream": stream, "alt": "sse", "stream_options": {"include_usage": True}}
    return case.provider.render(messages, request=request, response_id="id_1", model="m-1", usage=usage or {})


@pytest.mark.parametrize("stream", [False, True])
def test_rendered_reads_back(case: Case, stream: bool) -> None:
    read = case.read(case.plain)
    usage = {name: value for name, value in read.attributes.items() if isinstance(value, int)}
    kind, body = render(case, case.expected["messages"], stream=stream, usage=usage)
    assert kind.startswith(case.framing.TYPE) is stream
    again = case.read(body, kind)
    assert messages_of(again) == case.expected["messages"]
    assert (again.outcome, again.complete) == ("ok", True)
    assert {name: again.attributes[name] for name in usage} == usage
    for name, value in ((names.GEN_AI_RESPONSE_ID, "id_1"), (names.GEN_AI_RESPONSE_MODEL, "m-1")):
        assert again.attributes.get(name) == (None if name in case.untold else value)
    assert case.provider.terminal(body) is (stream or case.framing is FRAMINGS["ndjson"]), "one line is a whole stream there"
    as_step = {name.removeprefix("gen_ai.usage.").replace(".", "_"): value for name, value in usage.items()}
    assert render(case, case.expected["messages"], stream=stream, usage=as_step) == (kind, body)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(TEXTS, st.integers() | TEXTS | st.none() | st.lists(st.booleans(), max_size=2), max_size=3)
CALLS = st.fixed_dictionaries(
    {"type": st.just("tool_call"), "id": st.text("abc_1", min_size=1), "name": st.text("abc", min_size=1), "arguments": ARGUMENTS}
)
REASONS = st.sampled_from(["stop", "length", "content_filter"])


@QUIET
@given(text=st.none() | TEXTS.filter(bool), calls=st.lists(CALLS, max_size=3), reason=REASONS, stream=st.booleans())
def test_any_text_and_calls_survive(case: Case, text: str | None, calls: list[Any], reason: str, stream: bool) -> None:
    parts = [*([] if text is None else [{"type": "text", "content": text}]), *calls]
    if case.expected["name"] == "openai.responses" and reason == "stop" and calls:
        reason = "tool_call"
    messages = [{"role": "assistant", "parts": parts, "finish_reason": reason}]
    kind, body = render(case, messages, stream=stream)
    assert messages_of(case.read(body, kind)) == messages


# ---- nothing raises ----------------------------------------------------------------------------------------------


def replaced(tree: Any, place: int, value: Any) -> tuple[Any, int]:
    """The tree with its node number ``place`` (in pre-order) replaced, and the number of nodes left to count."""
    if place == 0:
        return value, -1
    place -= 1
    if isinstance(tree, (dict, list)):
        made: Any = {} if isinstance(tree, dict) else [None] * len(tree)
        for key, child in tree.items() if isinstance(tree, dict) else enumerate(tree):
            made[key], place = (child, place) if place < 0 else replaced(child, place, value)
        return made, place
    return tree, place


@QUIET
@given(body=JSON, place=st.integers(0, 150))
def test_any_json_as_request(case: Case, body: Any, place: int) -> None:
    for request in (body, replaced(case.request, place, body)[0]):
        check_attributes(case.provider.request(request).attributes)
        case.provider.matches("POST", case.expected["paths"][0], request)
        check_attributes(case.provider.request(case.provider.asked(case.expected["paths"][0], request)).attributes)


@QUIET
@given(value=JSON, place=st.integers(0, 120), status=st.sampled_from([200, 404]))
def test_any_json_as_response(case: Case, value: Any, place: int, status: int) -> None:
    for body in (value, replaced(json.loads(case.plain), place, value)[0]):
        read = case.read(json.dumps(body).encode(), status=status)
        check_attributes(read.attributes)
        for stream in (False, True):
            kind, rendered = render(case, messages_of(read), stream=stream)
            check_attributes(case.read(rendered, kind).attributes)


@QUIET
@given(values=st.lists(JSON, max_size=3), place=st.integers(0, 12), event=st.integers(0, 40))
def test_any_json_as_event(case: Case, values: list[Any], place: int, event: int) -> None:
    frames = case.framing.data(case.stream)
    event %= len(frames)
    for value in values:
        if frames[event] != _sse.DONE:
            changed = json.dumps(replaced(json.loads(frames[event]), place, value)[0])
            frames[event] = changed
    check_attributes(case.streamed(case.framing.render(frames)).attributes)
    check_attributes(case.streamed(case.framing.render([json.dumps(value) for value in values])).attributes)


@QUIET
@given(body=st.binary(max_size=60), prefix=st.sampled_from([b"", b"data: ", b"event: error\ndata:", b"data: {}\n\n"]))
def test_any_bytes(case: Case, body: bytes, prefix: bytes) -> None:
    for kind in (case.framing.TYPE, JSON_TYPE, ""):
        for status in (200, 500):
            check_attributes(case.read(prefix + body, kind, status).attributes)
    case.provider.terminal(prefix + body)
    recognise("POST", case.expected["paths"][0], "", body)


@QUIET
@given(parts=st.lists(st.dictionaries(st.sampled_from(["type", "content", "id", "name", "arguments", "value"]), JSON), max_size=3))
def test_any_messages_as_output(case: Case, parts: list[Any]) -> None:
    for kind in (None, "text", "tool_call", "reasoning", "refusal", "generic", "thinking"):
        messages = [{"parts": [part if kind is None else {**part, "type": kind} for part in parts]}]
        for stream in (False, True):
            content_type, body = render(case, messages, stream=stream)
            check_attributes(case.read(body, content_type).attributes)
