"""What the record of a step's start says: its kind and name, its place, what it is given."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from spanreplay.boundary import scope as scopes
from spanreplay.boundary.call import Call
from spanreplay.boundary.writing import Writing
from spanreplay.semconv import attributes as names

if TYPE_CHECKING:
    from spanreplay.boundary.session import RunContext
    from spanreplay.boundary.step import Step

_OPERATIONS: Final[Mapping[str, str]] = {
    "model_call": "chat",
    "tool_call": "execute_tool",
    "agent": "invoke_agent",
    "retrieval": "retrieval",
    "memory": "search_memory",
}


def start_attributes(step: "Step", call: Call, extra: Mapping[str, Any] | None, writing: Writing) -> dict[str, Any]:
    """The attributes of a step that begins.

    Args:
        step: which has its place already.
        call: that it is.
        extra: attributes as they are to stand there, of no secret.
        writing: of the step.
    """
    session = step.session
    attributes: dict[str, Any] = {names.STEP_KIND: call.kind, names.STEP_PATH: step.path, names.STEP_SEQ_START: step.seq}
    operation = _OPERATIONS.get(call.kind)
    if operation is not None:
        attributes[names.GEN_AI_OPERATION_NAME] = operation
    attributes[names.STEP_NAME] = call.name
    attributes[names.PROCESS_ID] = session.process_id
    _put_place(step, attributes)
    if session.clock_reads:
        attributes[names.STEP_CLOCK] = session.clock_reads.take()
    if session.orders:
        attributes[names.STEP_ORDER] = writing.text(names.STEP_ORDER, session.orders.take())
    writing.put_all(attributes, session.attributes)
    writing.put_all(attributes, {**scopes.in_force.get(), **call.attributes} if call.kind == "model_call" else call.attributes)
    if call.kind == "tool_call":
        attributes[names.GEN_AI_TOOL_NAME] = call.name
    elif call.kind == "agent":
        attributes.setdefault(names.GEN_AI_AGENT_NAME, call.name)
    if call.call_id is not None:
        attributes[names.GEN_AI_TOOL_CALL_ID] = call.call_id
    if call.effect is not None:
        attributes[names.STEP_EFFECT] = call.effect
    if call.passed:
        attributes[names.STEP_PASSED] = True
    if call.idempotency_key is not None:
        attributes[names.STEP_IDEMPOTENCY_KEY] = writing.text(names.STEP_IDEMPOTENCY_KEY, call.idempotency_key)
    if call.input is not None and step.input is not None:
        writing.put_typed(attributes, call.input, step.input, names.STEP_INPUT, call.input_attribute)
    if extra:
        attributes.update(extra)
    return attributes


def _put_place(step: "Step", attributes: dict[str, Any]) -> None:
    if step.parent is not None and not step.starts_run:
        attributes[names.STEP_PARENT] = step.parent.span_id
    if step.scope.born is not None:
        attributes[names.STEP_FORK] = step.scope.born
    run = step.run
    if run is None:
        return
    attributes[names.RUN_ID] = run.run_id
    if run.command_id is not None:
        attributes[names.RUN_COMMAND_ID] = run.command_id
    if step.starts_run:
        attributes[names.RUN_ROOT] = True
        attributes[names.RUN_PATH] = step.path
        attributes[names.RUN_NAME] = run.name
        attributes[names.RUN_REDACTION] = step.session.redactor.policy.to_json()
        attributes.update(step.session.of_runs)
    elif (agent := _agent_of(step, run)) is not None:
        attributes[names.GEN_AI_AGENT_NAME] = agent


def _agent_of(step: "Step", run: "RunContext") -> str | None:
    """Whose step this is: the agent's itself, or the nearest one around."""
    around: Step | None = step
    while around is not None and around.call.kind != "agent":
        around = around.parent
    return run.agent if around is None else around.call.name
