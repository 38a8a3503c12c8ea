"""The codes of grade reasons, once, and how a grade goes down.

A reason says what is missing, doubted or worth knowing. Whether it lowers the grade is decided where it is found.
"""

import shlex
from collections.abc import Iterable
from typing import Final

from spanreplay.replay.model import GRADE_ORDER, Grade, Json
from spanreplay.replay.showing import short

# ---- evidence missing: incomplete --------------------------------------------------------------------------------
CUT: Final = "cut"
"""A value is not the value that was recorded: shortened or changed on its way."""
DROPPED_ATTRIBUTES: Final = "dropped-attributes"
DROPPED_EVENTS: Final = "dropped-events"
NEVER_ENDED: Final = "never-ended"
EFFECT_UNKNOWN: Final = "effect-unknown"
"""A call that acts on the outside began, and nothing says whether it did act."""
MESSAGE_ABSENT: Final = "message-absent"
"""A message in the midst of others is not there."""
WIRE_INCOMPLETE: Final = "wire-incomplete"
UNREADABLE: Final = "unreadable"
"""A record was there and could not be understood."""
RECORDS_DROPPED: Final = "records-dropped"
SOURCE_LOSS: Final = "source-loss"
"""The input that the run was read from had lost something, of this run or of any in it."""

# ---- less than the exact exchange: semantic or structure ---------------------------------------------------------
WIRE_ABSENT: Final = "wire-absent"
LEFT_OFF: Final = "left-off-span"
"""Recorded, but this copy of the span was made without it."""
LOSSY: Final = "lossy"
REDACTED_RESULT: Final = "redacted-result"
INPUT_ABSENT: Final = "input-absent"
OUTPUT_ABSENT: Final = "output-absent"
CONTENT_ELSEWHERE: Final = "content-elsewhere"
FOREIGN: Final = "recorded-by-others"

# ---- worth knowing: no downgrade ---------------------------------------------------------------------------------
REDACTED_INPUT: Final = "redacted-input"
EMPTY_MESSAGE: Final = "empty-message"
"""A message to the model is there without what it said: some instrumentations leave out what is not one plain text."""
REDACTED_HEADER: Final = "redacted-header"
MISSING_PARENT: Final = "missing-parent"
CYCLE: Final = "cycle"
SEVERAL_ROOTS: Final = "several-roots"
NO_CALLS: Final = "no-calls"
"""No call of a model or a tool is in the run: there is nothing that a replay would answer."""
NO_ROOT: Final = "no-root"
AS_ASKED: Final = "input-as-asked"
"""The arguments of a tool call are those of the request that it answers."""
AS_TOLD: Final = "as-told"
"""The input or output of a step is what a later request tells the model of it."""
ERROR_OF_AGENT: Final = "error-of-agent"
"""How a step ended is what the agent around it says: its own span does not tell."""
ATTESTED: Final = "attested"
"""Another program did it and told of it."""
DOUBLED: Final = "double-instrumentation"
MAYBE_TWICE: Final = "maybe-twice"
"""Steps that say the same at the same time: one call that was recorded twice, or two."""
BESIDE_TOOL: Final = "beside-tool"
"""A sub-agent that ran during a tool call but is not inside it in the tree: whether it was put there, and why."""
AGENTS_MIXED: Final = "agents-mixed"
"""Model calls ran at the same time in one place, and nothing says which of several agents each belongs to."""
TOOL_INFERRED: Final = "tool-inferred"
"""The span does not say what it is; a model call just before asked for a call of its name and arguments."""
CALL_ID_INFERRED: Final = "call-id-inferred"
"""The span has no call id; the one shown is that of the request that the call answers."""
ARGUMENTS_DIFFER: Final = "arguments-differ"
"""A call has the id of a request and other arguments."""
CALL_NOT_RUN: Final = "call-not-run"
"""A model asked for a call, and neither the call nor an answer to it is here."""
CALL_NOT_OFFERED: Final = "call-not-offered"
"""A model asked for a tool that it had not been offered; the messages have an answer to it, which is no tool's."""
CALL_WITHOUT_SPAN: Final = "call-without-span"
"""A model asked for calls that were answered, and no span of them is here."""
ANSWER_WITHOUT_SPAN: Final = "answer-without-span"
"""The messages of a model call have an answer that no span of a model call gave."""
FROM_MODEL: Final = "from-model-calls"
"""The run's input or output is that of its first or last model call."""
JOINED: Final = "joined"
"""Traces that were made one run because it was asked for."""
BESIDE_CUT: Final = "beside-cut"
"""More steps ran at the same time than are listed as beside each other."""
CLOCK_SKEW: Final = "clock-skew"
AFTER_END: Final = "after-end"
"""A step began after what it is inside of had ended."""
LOG_WITHOUT_SPAN: Final = "log-without-span"
UNTAPED: Final = "untaped"
ASKED_BY_SERVER: Final = "request of an MCP server passed on"
"""A proxy has passed on what a server asked its client."""
_WRITES: Final = frozenset({"file written", "database opened"})
OTHER_VERSION: Final = "other-version"
"""The store has the same span with other content too."""


def untaped(item: Json) -> str:
    """What to say of one thing that happened outside every seam: what it was, and how a replay lets it happen again."""
    what, target = (item.get("what"), item.get("target")) if isinstance(item, dict) else (None, None)
    if not isinstance(what, str) or not isinstance(target, str):
        return f"not recorded: {item[:200] if isinstance(item, str) else short(item)}"
    if what in _WRITES:
        advice = f"; a replay refuses it unless told --allow-write {shlex.quote(target)}"
    elif what == ASKED_BY_SERVER:
        advice = "; a replay answers the request that it came with, and does not ask"
    else:
        advice = "; a replay refuses it. What stands inside a @tool is answered from the record"
    return f"not recorded: {what} {target}{advice}"


def worst(grades: Iterable[Grade], otherwise: Grade = "exact") -> Grade:
    """The lowest of some grades, ``otherwise`` of none."""
    places = [GRADE_ORDER.index(grade) for grade in grades]
    return GRADE_ORDER[max(places)] if places else otherwise
