"""What is left of steps whose record was cut: what later requests tell of them, else their JSON as far as it goes.

Only for a re-execution that accepts incomplete records. What is shown of a run stays what was recorded.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from spanreplay.replay.model import Json, Run, Step
from spanreplay.replay.reading.asking import plain_value
from spanreplay.replay.reading.cut_json import closed
from spanreplay.replay.reading.fields import decoded_json
from spanreplay.replay.reading.messages import input_view, is_talk, output_view
from spanreplay.replay.rebuilding.told import Told, answer_told, told_of


def salvaged(run: Run) -> tuple[Run, frozenset[int]]:
    """A run of others with what is left of its cut steps, and the steps whose input goes on where nothing is left.

    Args:
        run: as recorded.
    """
    told: dict[str, Told] = {}
    models = [step for step in run.steps if step.kind == "model_call"]
    if any(step.grade == "incomplete" for step in run.steps):
        for step in models:
            told |= told_of(step.input)
    made: list[Step] = []
    goes_on: set[int] = set()
    for step in run.steps:
        if step.grade != "incomplete" or step.path is not None or step.kind not in ("model_call", "tool_call"):
            made.append(step)
            continue
        made.append(_tool(step, told.get(step.call_id or "")) if step.kind == "tool_call" else _model(step, models))
        whole_input = made[-1].input == step.input or (step.kind == "tool_call" and not _is_left_of(made[-1].input, step.input))
        goes_on |= set() if whole_input else {step.seq}
    given = _Given()
    for place, step in enumerate(run.steps):
        if step.kind == "model_call" and given.of_text:
            made[place] = replace(made[place], input=given.in_request(made[place].input))
        elif step.kind == "tool_call" and made[place] is not step:
            given.add(step, made[place])
    return replace(run, steps=tuple(made)), frozenset(goes_on)


def _tool(step: Step, told: Told | None) -> Step:
    given, gave = step.input, step.output
    if isinstance(given, dict) and (text := _cut(given.get("arguments"))) is not None:
        called = None if told is None or told.call is None else decoded_json(told.call.get("arguments"))[0]
        given = {**given, "arguments": called if called is not None and _cut(called) is None else closed(text)}
    if isinstance(gave, dict) and (text := _cut(gave.get("result"))) is not None:
        answered = None if told is None or told.response is None else decoded_json(told.response["response"])[0]
        gave = {**gave, "result": answered if answered is not None and _cut(answered) is None else closed(text)}
    return replace(step, input=given, output=gave)


class _Given:
    """What tools give of cut results. The requests after them are to have it as the agent sends it, and not as it was cut."""

    def __init__(self) -> None:
        self.of_text: dict[str, Json] = {}
        self._of_call: dict[str, tuple[str, Json]] = {}

    def add(self, step: Step, made: Step) -> None:
        """Note a tool call, as recorded and as it answers."""
        text = _cut(step.output.get("result")) if isinstance(step.output, dict) else None
        if text is not None and isinstance(made.output, dict) and made.output["result"] == closed(text):
            self.of_text[text] = made.output["result"]
            if step.call_id is not None:
                self._of_call[step.call_id] = text, made.output["result"]

    def in_request(self, asked: Json) -> Json:
        """What a model was asked, with what the tools give."""
        said = asked.get("messages") if isinstance(asked, dict) else None
        return {**asked, "messages": [self._in_message(message) for message in said]} if isinstance(said, list) else asked

    def _in_message(self, message: Json) -> Json:
        parts = message.get("parts") if isinstance(message, dict) else None
        return {**message, "parts": [self._in_part(part) for part in parts]} if isinstance(parts, list) else message

    def _in_part(self, part: Json) -> Json:
        text = _cut(plain_value(part.get("response"))) if isinstance(part, dict) and part.get("type") == "tool_call_response" else None
        if text is None:
            return part
        call_id = part.get("id")
        known, value = self._of_call.get(call_id, ("", None)) if isinstance(call_id, str) else ("", None)
        if known and (text.startswith(known) or known.startswith(text)):
            return {**part, "response": value}
        return {**part, "response": self.of_text[text]} if text in self.of_text else part


def _is_left_of(value: Json, recorded: Json) -> bool:
    """Whether arguments are what is left of a cut text, and not what a later request tells."""
    text = _cut(recorded.get("arguments")) if isinstance(recorded, dict) else None
    return text is not None and isinstance(value, dict) and value.get("arguments") == closed(text)


def _model(step: Step, models: Sequence[Step]) -> Step:
    asked, said = step.input, step.output
    if (text := _cut_messages(said)) is not None:
        later = (answer_told(asked, model.input) for model in models if model.seq > step.seq)
        answer = next((found for found in later if found), None)
        said = {"messages": answer, "finish": None} if answer else output_view(_talk(text))
    if isinstance(asked, dict) and (text := _cut_messages(asked)) is not None:
        talk = _talk(text)
        left = input_view(talk) if talk else {"messages": []}
        asked = {**asked, **{name: value for name, value in left.items() if value or name == "messages"}}
    return replace(step, input=asked, output=said)


def _cut_messages(view: Json) -> str | None:
    """The text of messages that stops in the middle; ``None`` for messages that are whole."""
    if not isinstance(view, dict):
        return None
    text = _cut(view.get("raw"))
    if text is None and isinstance(view.get("messages"), list) and len(view["messages"]) == 1:
        text = next((_cut(said) for said in _texts(view["messages"][0])), None)
    return text


def _talk(text: str) -> Json:
    """What is left of messages; the last one where enough of it is left to be one."""
    left = closed(text)
    return left[:-1] if isinstance(left, list) and left and not is_talk(left) else left


def _texts(message: Json) -> Iterable[Json]:
    parts = message.get("parts") if isinstance(message, dict) else None
    return [part.get("content") for part in parts if isinstance(part, dict)] if isinstance(parts, list) and len(parts) == 1 else []


def _cut(value: Json) -> str | None:
    """A text that begins like an object or a list and is none."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") and isinstance(decoded_json(value)[0], str):
        return value
    return None
