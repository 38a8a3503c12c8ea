"""What OpenInference says that a model was asked and answered, in the parts shape.

Messages are flattened to an attribute a leaf. The whole request and response often stand beside them as ``input.value`` and
``output.value``: where these are bodies that a provider knows, they are the better record, since they hold what the attributes leave out.
Source: <https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md>.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import Fields, decoded_json
from spanreplay.replay.reading.flattened import LEAF, Node, gaps, inner, items, leaf, listed, unflattened
from spanreplay.replay.reading.media import media_part
from spanreplay.replay.reading.merged_results import told_apart
from spanreplay.replay.reading.messages import body_answered, body_asked, definitions, input_view, is_talk, messages, output_view
from spanreplay.replay.reading.parts import part, role_of
from spanreplay.replay.reading.rejoined import content_of, member
from spanreplay.replay.reading.shown_messages import shown_message, shown_messages

INPUT: Final = "input.value"
OUTPUT: Final = "output.value"
PARAMETERS: Final = "llm.invocation_parameters"
FINISH: Final = "llm.finish_reason"

_FLAT: Final = ("llm.input_messages", "llm.output_messages", "llm.prompts", "llm.choices", "llm.tools")
_MEDIA: Final = ("image", "audio", "video", "document")
_EXTRAS: Final = ("id", "signature", "data", "encrypted_content")
_NOT_PARAMS: Final = frozenset(
    {
        *("model", "model_name", "messages", "input", "instructions", "tools", "functions", "stream"),
        *("id", "created_at", "completed_at", "object", "status", "usage", "output"),  # some write the parameters that the answer repeats
    }
)


class Exchange(NamedTuple):
    """Both sides of a model call."""

    asked: Json
    answered: Json
    missing: list[int]
    """Places of input messages that are not there, though later ones are."""
    model: str | None
    """As it was asked for."""
    response_id: str | None


def exchange(fields: Fields) -> Exchange:
    """What the attributes of a span say of a model call."""
    flat = unflattened(fields.attributes, *_FLAT)
    request, response = _body(fields, INPUT), _body(fields, OUTPUT)
    known, _ = decoded_json(fields.attributes.get(PARAMETERS))
    parameters = known if isinstance(known, dict) else {}
    asked, missing = _asked(fields, flat, request)
    if asked is not None and _has_empty_text(request):
        asked["messages"] = [
            message if message["parts"] else {**message, "parts": [{"type": "text", "content": ""}]} for message in asked["messages"]
        ]
    if asked is not None:
        asked["tools"] = asked["tools"] or _tools(flat["llm.tools"], parameters)
        told = {name: value for name, value in parameters.items() if name not in _NOT_PARAMS and value is not None}
        asked["params"] = asked["params"] or (told if isinstance(known, dict) else None)
    model = Fields(request).text("model") if isinstance(request, dict) else None
    return Exchange(
        asked,
        _answered(fields, flat, response),
        missing,
        model or Fields(parameters).text("model", "model_name"),
        Fields(response).identifier("id", "responseId") if isinstance(response, dict) and "generations" not in response else None,
    )


def _has_empty_text(body: Json) -> bool:
    """Whether a text of a whole body is there and empty: its attribute is left out, and nothing was withheld."""
    waiting = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if value.get("content") == "" and ("role" in value or "type" in value):
                return True
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False


def _body(fields: Fields, name: str) -> Json:
    """An attribute as JSON, if it is whole."""
    if name not in fields:
        return None
    value, whole = decoded_json(fields.attributes[name])
    return value if whole and isinstance(value, dict | list) else None


def _asked(fields: Fields, flat: Mapping[str, Node], request: Json) -> tuple[Json, list[int]]:
    view = _request_view(request)
    if flat["llm.input_messages"] and (_has_plain_items(request) or _is_hollow(view)):
        view = None  # of Gemini's contents, which are shown as Python does; the messages are flattened too
    if view is not None and (isinstance(request, dict) or view["system"] or any(m["role"] == "system" for m in view["messages"])):
        return view, []
    said, missing = messages_of(flat["llm.input_messages"], "user")
    if shown := shown_messages(request):
        said, missing = _without_gaps(flat["llm.input_messages"], said, missing, shown)
    if view is not None:  # the instructions are no item of the list
        return {**view, "system": [part for message in said if message["role"] == "system" for part in message["parts"]]}, []
    if said:
        said = _completed(said, request, input_view)
        if all(message["role"] == "system" for message in said):  # a question in plain text stands in ``input.value`` alone
            asked = input_view(_plain(fields, INPUT))
            said += asked["messages"] if asked is not None and request is None else []
        return {"messages": said, "system": [], "tools": [], "params": {}}, missing
    prompts = flat["llm.prompts"]
    texts = [text for _, node in items(prompts) if (text := _text(node, "prompt")) is not None] or leaf(prompts, LEAF)
    return input_view(texts or _plain(fields, INPUT)), []


def _has_plain_items(request: Json) -> bool:
    contents = request.get("contents") if isinstance(request, dict) else None
    return isinstance(contents, list) and any(isinstance(item, str) for item in contents)


def _is_hollow(view: Json) -> bool:
    """Whether a body has messages, and nothing in any of them: what converts other spans writes bodies that lack what it flattens."""
    said = view["messages"] if isinstance(view, dict) else []
    return bool(said) and not any(message["parts"] for message in said)


def _request_view(value: Json) -> Json:
    """The view of a request body as it was sent, or of its list of messages or items; ``None`` of a framework's idea of it."""
    if isinstance(value, list):
        talk = all(isinstance(item, dict) and ("role" in item or is_talk(item)) for item in value)
        return input_view(value) if value and talk else None
    return body_asked(value) if isinstance(value, dict) and isinstance(value.get("model"), str) else None


def _answered(fields: Fields, flat: Mapping[str, Node], response: Json) -> Json:
    finish = fields.text(FINISH)
    view = body_answered(response) if isinstance(response, dict) and "generations" not in response else None
    if view is None or (flat["llm.output_messages"] and _is_hollow(view)):
        said = messages_of(flat["llm.output_messages"], "assistant").messages
        if said:
            return {"messages": _completed(said, response, body_answered), "finish": finish}
        choices = [text for _, node in items(flat["llm.choices"]) if (text := _text(node, "completion")) is not None]
        plain = _plain(fields, OUTPUT)
        view = output_view(choices or (shown_message(plain) or plain if isinstance(plain, str) else plain))
    return None if view is None else {**view, "finish": view["finish"] or finish}


def _completed(said: list[dict[str, Json]], body: Json, view: Callable[[Json], Json]) -> list[dict[str, Json]]:
    """Messages with what their calls and results lack and the whole body has, where it has the same calls, or results, in the same order.

    The instrumentation of LangChain wrote no ids into attributes at first, and an empty result into none.
    """
    for kind, lacking in (("tool_call", ("id",)), ("tool_call_response", ("id", "response"))):
        ours = _of_kind(said, kind)
        if not isinstance(body, dict) or all(one.get(name) is not None for one in ours for name in lacking):
            continue
        told = view(body)
        theirs = _of_kind(told["messages"], kind) if told is not None else []
        if [one.get("name") for one in ours] == [one.get("name") for one in theirs]:
            for one, other in zip(ours, theirs, strict=True):
                one |= {name: other.get(name) for name in lacking if one.get(name) is None}
    return said


def _of_kind(said: Iterable[Mapping[str, Json]], kind: str) -> list[dict[str, Json]]:
    held = (message.get("parts") for message in said)
    return [part for parts in held if isinstance(parts, list) for part in parts if isinstance(part, dict) and part.get("type") == kind]


def _plain(fields: Fields, name: str) -> Json:
    """An attribute decoded; damage is remembered, since nothing else tells what was here."""
    return fields.json(name) if name in fields else None


def _text(node: Json, name: str) -> str | None:
    if not isinstance(node, dict):
        return node if isinstance(node, str) else None
    text = leaf(inner(node, name), "text")
    return text if isinstance(text, str) else None


def _tools(node: Node, parameters: Mapping[str, Json]) -> list[Json]:
    found: list[Json] = []
    for item in listed(node):
        tool = inner(item, "tool") or item
        schema, _ = decoded_json(member(tool, "json_schema"))
        if isinstance(schema, dict):
            found.append(schema)
        elif leaf(tool, "name") is not None:
            found.append(
                {"type": "function", **{name: value for name in ("name", "description") if (value := leaf(tool, name)) is not None}}
            )
    return definitions(found or parameters.get("tools"))


# ---- flattened messages ------------------------------------------------------------------------------------------


class Flattened(NamedTuple):
    """Messages that were flattened."""

    messages: list[dict[str, Json]]
    missing: list[int]
    """Places that are empty before the last."""


def _without_gaps(node: Node, said: list[dict[str, Json]], missing: list[int], shown: list[dict[str, Json]]) -> Flattened:
    """Messages with those that were not flattened, and the ids that were left out, from what Python shows of all of them."""
    places = [place for place, _ in items(node)]
    told = [message for one in shown for message in messages([one], "user") or ()]
    roles = [message["role"] for message in said]
    if len(told) != len(shown) or len(places) != len(said) or [told[p]["role"] for p in places if p < len(told)] != roles:
        return Flattened(said, missing)
    there = dict(zip(places, said, strict=True))
    whole = [there.get(place, message) for place, message in enumerate(told)]
    return Flattened(_completed(whole, {"messages": shown}, lambda body: {"messages": told}), [])


def messages_of(node: Node, role: str) -> Flattened:
    """Messages in the order of their numbers.

    Args:
        node: what is under ``llm.input_messages`` or ``llm.output_messages``.
        role: of a message that names none.
    """
    said = [_message(inner(item, "message") or item, role) for item in listed(node)]
    return Flattened(told_apart([message for message in said if message is not None]), gaps(node))


def _message(node: Node, role: str) -> dict[str, Json] | None:
    role = role_of(leaf(node, "role"), role)
    content, blocks = _content(node), [_block(block) for block in listed(inner(node, "contents"))]
    made: list[dict[str, Json]] = [block for block in blocks if block is not None]
    if role in ("tool", "function"):
        answer: Json = content[0] if len(content) == 1 else content or (made or None)
        made = [{"type": "tool_call_response", "id": leaf(node, "tool_call_id"), "response": answer}]
    else:
        texts = [block.get("content") for block in made]
        if content != ["".join(text for text in texts if isinstance(text, str))]:
            made = [*({"type": "text", "content": text} for text in content if text not in texts), *made]
    calls = [_call(inner(call, "tool_call") or call) for call in listed(inner(node, "tool_calls"))]
    made += [call for call in calls if call["id"] is None or all(block.get("id") != call["id"] for block in made)]
    legacy = leaf(node, "function_call_name")
    if isinstance(legacy, str):
        made.append(part({"type": "tool_call", "id": None, "name": legacy, "arguments": leaf(node, "function_call_arguments_json") or {}}))
    if not made and "role" not in node:
        return None
    name = leaf(node, "name")
    return {"role": "tool" if role == "function" else role, "parts": made, **({"name": name} if isinstance(name, str) else {})}


def _content(node: Node) -> list[Json]:
    """The texts of a message: one, or several with numbers."""
    texts = [text for _, text in items(inner(node, "content"))]
    value = None if texts else content_of(node, "content")
    return texts or ([] if value is None or value == "" else [value])


def _call(node: Node) -> dict[str, Json]:
    function = inner(node, "function")
    arguments = member(function, "arguments")
    made = {
        "type": "tool_call",
        "id": leaf(node, "id"),
        "name": leaf(function, "name"),
        "arguments": {} if arguments is None else arguments,  # instrumentations leave out "{}"
    }
    signature = leaf(node, "reasoning_signature")
    return part(made if signature is None else {**made, "signature": signature})


def _block(node: Node) -> dict[str, Json] | None:
    content = inner(node, "message_content") or node
    call = inner(node, "tool_call")
    if call:
        return _call(call)
    kind = leaf(content, "type")
    extras = {name: value for name in _EXTRAS if (value := leaf(content, name)) is not None}
    for medium in _MEDIA:
        if isinstance(content.get(medium), dict):
            return {**_medium(medium, inner(inner(content, medium), medium) or inner(content, medium)), **extras}
    text = leaf(content, "text")
    if kind in (None, "text") and text is not None:
        return {"type": "text", "content": text, **extras}
    if kind in ("reasoning", "thinking"):
        return {"type": "reasoning", "content": text or "", **extras}
    if kind is None and not extras:
        return None
    rest = {name: value for name, value in content.items() if name not in ("type", "text", LEAF, *_EXTRAS)}
    return {"type": str(kind or "generic"), **({} if text is None else {"content": text}), **rest, **extras}


def _medium(modality: str, node: Mapping[str, Json]) -> dict[str, Json]:
    rest = {name: leaf(node, name) for name in node if name not in ("url", "mime_type", "content", LEAF)}
    made = media_part(leaf(node, "url"), modality, leaf(node, "mime_type"))
    if made is None:
        made = {"type": modality} if leaf(node, "content") is None else {"type": "text", "content": leaf(node, "content")}
    return {**made, **{name: value for name, value in rest.items() if value is not None}}
