"""The store that the page about questions in SQL asks, and the answers that it shows.

``PYTHONPATH=tests python -m pages.queries`` writes the real answers into the page.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pages.console import ROOT
from spanreplay.replay.rebuilding.runs import index
from spanreplay.replay.reports.tables import render_table
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, Resource, Scope, SpanRecord
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import ProcessInfo
from spanreplay.store.store import Store

PAGE: Final = ROOT / "docs" / "queries.md"
_BLOCK: Final = re.compile(r"^```sql\n(?P<sql>.*?)^```\n(?:\n```text\n(?P<answer>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_START: Final = 1_790_000_000_000_000_000
_PROCESS: Final = ProcessInfo(host="agents-1", pid=4711, process_id="5f0c2d9e5f0c2d9e", started_ns=_START, argv=("python", "refunds.py"))


@dataclass(frozen=True, slots=True)
class Question:
    """A statement of the page and the answer that stands below it."""

    sql: str
    answer: str
    start: int
    """Where the answer begins in the page."""
    end: int


def questions(page: str) -> Iterator[Question]:
    """All statements of the page."""
    for block in _BLOCK.finditer(page):
        yield Question(block["sql"], block["answer"] or "", block.start("answer"), block.end("answer"))


def answer(store: Store, sql: str) -> str:
    """What ``spanreplay query`` prints."""
    result = store.query(sql)
    return render_table(result.columns, [[_plain(value) for value in row] for row in result.rows], colour=False) + "\n"


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _says(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _schema(name: str, *parameters: str) -> dict[str, Any]:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": properties}}


class _Agent:
    """Spans of one run, its calls one after the other."""

    def __init__(self, number: int, prompt: str, tools: list[dict[str, Any]]) -> None:
        self.spans: list[SpanRecord] = []
        self.run_id = f"{number:032x}"
        self._prompt, self._tools = prompt, tools
        self._now = _START + number * 3_600 * 10**9
        self._history = [_says("system", "You look after refunds.")]

    def _span(self, name: str, took_ms: int, attributes: dict[str, Any], *, failed: str = "", ended: bool = True) -> None:
        own = {a.RUN_ID: self.run_id, a.PROCESS_ID: _PROCESS.process_id, a.GEN_AI_AGENT_NAME: "refunds"}
        start, self._now = self._now, self._now + took_ms * 10**6
        self.spans.append(
            SpanRecord(
                trace_id=self.run_id,
                span_id=f"{len(self.spans) + 1:016x}",
                parent_span_id=None if not self.spans else f"{1:016x}",
                name=name,
                kind=1,
                start_ns=start,
                end_ns=self._now if ended else None,
                status=STATUS_ERROR if failed else 0,
                status_message=failed,
                attributes=own | attributes | ({a.ERROR_TYPE: "TimeoutError"} if failed else {}),
                resource=Resource(attributes={"service.name": "shop"}),
                scope=Scope(name=a.SCOPE_NAME),
            )
        )

    def begin(self) -> None:
        self._span("invoke_agent refunds", 0, {a.STEP_KIND: "agent", a.GEN_AI_OPERATION_NAME: "invoke_agent", a.STEP_OUTCOME: "ok"})

    def asks(self, model: str, text: str, call: tuple[str, str, dict[str, str]] | None = None, took_ms: int = 900) -> None:
        self._history.append(_says("user", text))
        reply = _says("assistant", "Done.")
        if call is not None:
            reply = {"role": "assistant", "parts": [{"type": "tool_call", "id": call[0], "name": call[1], "arguments": call[2]}]}
        attributes = {
            a.STEP_KIND: "model_call",
            a.STEP_OUTCOME: "ok",
            a.GEN_AI_OPERATION_NAME: "chat",
            a.GEN_AI_REQUEST_MODEL: model,
            a.GEN_AI_PROMPT_NAME: "refunds",
            a.GEN_AI_PROMPT_VERSION: self._prompt,
            a.GEN_AI_INPUT_MESSAGES: json.dumps(self._history),
            a.GEN_AI_OUTPUT_MESSAGES: json.dumps([reply]),
            a.GEN_AI_TOOL_DEFINITIONS: json.dumps(self._tools),
            a.GEN_AI_USAGE_INPUT_TOKENS: 40 * len(self._history),
            a.GEN_AI_USAGE_OUTPUT_TOKENS: 12,
        }
        self._span(f"chat {model}", took_ms, attributes)
        self._history.append(reply)

    def calls(
        self, call: tuple[str, str, dict[str, str]], result: object, took_ms: int, effect: str, failed: str = "", **more: Any
    ) -> None:
        attributes = {
            a.STEP_KIND: "tool_call",
            a.GEN_AI_OPERATION_NAME: "execute_tool",
            a.GEN_AI_TOOL_CALL_ID: call[0],
            a.GEN_AI_TOOL_NAME: call[1],
            a.GEN_AI_TOOL_CALL_ARGUMENTS: json.dumps(call[2]),
            a.STEP_EFFECT: effect,
            **({a.STEP_OUTCOME: "error" if failed else "ok"} if more.get("ended", True) else {}),
            **({a.GEN_AI_TOOL_CALL_RESULT: json.dumps(result)} if result is not None else {}),
        }
        self._span(f"execute_tool {call[1]}", took_ms, attributes, failed=failed, **more)
        answered = {"role": "tool", "parts": [{"type": "tool_call_response", "id": call[0], "result": result}]}
        self._history.append(answered)


def make_store(folder: Path) -> Store:
    """Three runs of one agent: its prompt and a tool were changed after the first, and the last was killed."""
    store = Store.open(folder / "store", create=True)
    writer = JournalWriter(store.path, process=_PROCESS)
    status, before, after = _schema("order_status", "order"), _schema("refund", "order"), _schema("refund", "order", "amount")
    agents = []
    for number, prompt, schema in ((1, "7", before), (2, "8", after), (3, "8", after)):
        agent = _Agent(number, prompt, [status, schema])
        agent.begin()
        look = (f"call_{number}1", "order_status", {"order": f"471{number}"})
        agent.asks("gpt-5-mini", f"Where is order 471{number}?", look)
        agent.calls(look, {"state": "lost"}, 120 * number, "read")
        pay = (f"call_{number}2", "refund", {"order": f"471{number}"})
        agent.asks("gpt-5", "Then refund it, please.", pay, took_ms=2100)
        if number == 1:
            agent.calls(pay, {"paid": True}, 640, "irreversible")
            agent.asks("gpt-5-mini", "Thank you.")
        elif number == 2:
            agent.calls(pay, None, 30_000, "irreversible", failed="the bank did not answer")
            agent.asks("gpt-5-mini", "And?")
        else:
            agent.calls(pay, None, 0, "irreversible", ended=False)
        agents.append(agent)
    for agent in agents:
        for span in agent.spans:
            (writer.write_span if span.end_ns is not None else lambda one, _: writer.open_span(one))(span, "recorder")
    writer.close()
    store.compact()
    copy = agents[0].spans[2]
    store.add(
        [SpanRecord(trace_id=copy.trace_id, span_id=copy.span_id, name="cut on its way", start_ns=copy.start_ns, end_ns=copy.end_ns)],
        origin="import",
    )
    index(store)
    return store


def main() -> None:
    """Write the answers into the page."""
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        store = make_store(Path(folder))
        for question in reversed(list(questions(page))):
            if question.start >= 0:
                page = page[: question.start] + answer(store, question.sql) + page[question.end :]
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
