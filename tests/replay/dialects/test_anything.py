"""A dialect takes whatever stands under the names that it reads."""

import importlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import event, log, span
from spanreplay.replay import dialects
from spanreplay.replay.reading import messages, spoken
from spanreplay.replay.reading.dialect import Dialect, registry
from spanreplay.replay.reading.events import with_content
from spanreplay.replay.rebuilding.gathering import gathered
from spanreplay.replay.rebuilding.tree import build
from spanreplay.semconv import attributes as conventions
from spanreplay.spans.record import Scope
from support.size import FULL

CONVENTIONS = sorted({value for value in vars(conventions).values() if isinstance(value, str) and value.startswith(("gen_ai.", "error."))})
WORDS = ["", "{}", "null", "chat", "execute_tool", "invoke_agent", "user", "request", "response", "text", "tool_call", "binary", "x"]
KEYS = (
    "role content parts type text message messages tool_calls kind part_kind function_tools contents config tools candidates name model "
    "result arguments id input output toolUse toolResult event.name error args kwargs"
).split()


def constants(dialect: Dialect) -> list[str]:
    """The names that the module of a dialect has as constants."""
    module = importlib.import_module(f"{dialects.__name__}.{dialect.NAME}")
    found: set[str] = set()
    for value in vars(module).values():
        listed = value if isinstance(value, tuple | frozenset | dict) else [value]
        found |= {text for text in listed if isinstance(text, str)}
    return sorted(found) or ["x"]


leaves = st.none() | st.booleans() | st.integers(-2, 9) | st.floats(allow_nan=False) | st.sampled_from([*WORDS, *KEYS])
trees: st.SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4), max_leaves=10
)
values = trees | trees.map(json.dumps) | trees.map(lambda tree: json.dumps(tree)[:-1])


@pytest.mark.parametrize("dialect", registry(), ids=lambda dialect: dialect.NAME)
@given(data=st.data())
@settings(max_examples=1500 if FULL else 20, deadline=None)
def test_nothing_is_raised(dialect: Dialect, data: st.DataObject) -> None:
    own = constants(dialect)
    names = st.sampled_from([*own, *own, *CONVENTIONS, messages.OLD_SYSTEM])
    told = st.dictionaries(st.sampled_from([*own, "content", "message", *CONVENTIONS]), values, max_size=3)
    record = span(
        1,
        name=data.draw(st.sampled_from([*own, "chat m", "execute_tool t"])),
        end=data.draw(st.sampled_from([None, 5])),
        scope=Scope(name=data.draw(st.sampled_from([*own, ""]))),
        status=data.draw(st.integers(0, 2)),
        attributes={name: value for name, value in data.draw(st.dictionaries(names, values, max_size=7)).items() if value is not None},
        events=tuple(event(data.draw(st.sampled_from([*sorted(spoken.NAMES), "exception"])), data.draw(told)) for _ in range(2)),
    )
    inner = replace(record, span_id="2" * 16, parent_span_id=record.span_id, name=data.draw(st.sampled_from(own)))
    logs = [log(1, data.draw(st.sampled_from(own)), data.draw(told), body=data.draw(values)) for _ in range(2)]
    seen = {key.span_id: (span, logs) for key, (span, logs, _) in gathered(build([record, inner, *logs])).items()}
    for one, said in ((record, logs), *seen.values()):
        full = with_content(one, said).span
        if dialect.claims(full):
            dialect.read(full, said)
