"""Every attribute name that spanreplay writes or reads under its own dialect, once.

Standard names come from the OpenTelemetry semantic conventions, the GenAI part as of October 2026 (stability: development),
<https://github.com/open-telemetry/semantic-conventions-genai>. Names under ``spanreplay.`` exist only where OpenTelemetry has none.
Values marked *(J)* are JSON texts: a string attribute passes through every SDK version and every back end.
"""

from typing import Final

# ---- GenAI conventions -------------------------------------------------------------------------------------------
GEN_AI_OPERATION_NAME: Final = "gen_ai.operation.name"
GEN_AI_PROVIDER_NAME: Final = "gen_ai.provider.name"
GEN_AI_CONVERSATION_ID: Final = "gen_ai.conversation.id"
GEN_AI_OUTPUT_TYPE: Final = "gen_ai.output.type"

GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
GEN_AI_REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
GEN_AI_REQUEST_CHOICE_COUNT: Final = "gen_ai.request.choice.count"
GEN_AI_REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
GEN_AI_REQUEST_TOP_P: Final = "gen_ai.request.top_p"
GEN_AI_REQUEST_TOP_K: Final = "gen_ai.request.top_k"
GEN_AI_REQUEST_STOP_SEQUENCES: Final = "gen_ai.request.stop_sequences"
GEN_AI_REQUEST_FREQUENCY_PENALTY: Final = "gen_ai.request.frequency_penalty"
GEN_AI_REQUEST_PRESENCE_PENALTY: Final = "gen_ai.request.presence_penalty"
GEN_AI_REQUEST_SEED: Final = "gen_ai.request.seed"
GEN_AI_REQUEST_STREAM: Final = "gen_ai.request.stream"
GEN_AI_REQUEST_REASONING_LEVEL: Final = "gen_ai.request.reasoning.level"
GEN_AI_REQUEST_ENCODING_FORMATS: Final = "gen_ai.request.encoding_formats"
GEN_AI_REQUEST_PREVIOUS_RESPONSE_ID: Final = "gen_ai.request.previous_response.id"

GEN_AI_RESPONSE_ID: Final = "gen_ai.response.id"
GEN_AI_RESPONSE_MODEL: Final = "gen_ai.response.model"
GEN_AI_RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
GEN_AI_RESPONSE_STATUS: Final = "gen_ai.response.status"

GEN_AI_USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
GEN_AI_USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
"""What ``cache_write`` was called before; Jaeger's GenAI view (2.20) knows this name only."""
GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"

GEN_AI_EMBEDDINGS_DIMENSION_COUNT: Final = "gen_ai.embeddings.dimension.count"

GEN_AI_AGENT_ID: Final = "gen_ai.agent.id"
GEN_AI_AGENT_NAME: Final = "gen_ai.agent.name"
GEN_AI_AGENT_VERSION: Final = "gen_ai.agent.version"
GEN_AI_WORKFLOW_NAME: Final = "gen_ai.workflow.name"

GEN_AI_TOOL_NAME: Final = "gen_ai.tool.name"
GEN_AI_TOOL_TYPE: Final = "gen_ai.tool.type"
GEN_AI_TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
GEN_AI_TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
GEN_AI_TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"  # (J)
GEN_AI_TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"  # (J)
GEN_AI_TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"  # (J)

GEN_AI_SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"  # (J)
GEN_AI_INPUT_MESSAGES: Final = "gen_ai.input.messages"  # (J)
GEN_AI_OUTPUT_MESSAGES: Final = "gen_ai.output.messages"  # (J)

GEN_AI_PROMPT_NAME: Final = "gen_ai.prompt.name"
GEN_AI_PROMPT_VERSION: Final = "gen_ai.prompt.version"
GEN_AI_PROMPT_VARIABLE_PREFIX: Final = "gen_ai.prompt.variable."

GEN_AI_TOOL_CALL_DECISION_EVENT: Final = "gen_ai.tool.call.decision"
GEN_AI_TOOL_CALL_DECISION_OUTCOME: Final = "gen_ai.tool.call.decision.outcome"

GEN_AI_SKILL_NAME: Final = "gen_ai.skill.name"
GEN_AI_SKILL_SOURCE_URI: Final = "gen_ai.skill.source.uri"

MCP_METHOD_NAME: Final = "mcp.method.name"
MCP_PROTOCOL_VERSION: Final = "mcp.protocol.version"
MCP_RESOURCE_URI: Final = "mcp.resource.uri"

GEN_AI_INFERENCE_DETAILS_EVENT: Final = "gen_ai.client.inference.operation.details"

OPENAI_API_TYPE: Final = "openai.api.type"

# ---- general OpenTelemetry ---------------------------------------------------------------------------------------
ERROR_TYPE: Final = "error.type"
EXCEPTION_EVENT: Final = "exception"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
EXCEPTION_STACKTRACE: Final = "exception.stacktrace"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
SERVICE_NAME: Final = "service.name"
DEPLOYMENT_ENVIRONMENT: Final = ("deployment.environment.name", "deployment.environment")
"""Of the resource: the name, and the one before it."""
SESSION_ID: Final = "session.id"
USER_ID: Final = "user.id"
HTTP_REQUEST_METHOD: Final = "http.request.method"
HTTP_RESPONSE_STATUS_CODE: Final = "http.response.status_code"
URL_FULL: Final = "url.full"
PROCESS_PID: Final = "process.pid"
PROCESS_EXECUTABLE_NAME: Final = "process.executable.name"
PROCESS_COMMAND_ARGS: Final = "process.command_args"  # list, executable first
PROCESS_WORKING_DIRECTORY: Final = "process.working_directory"
NETWORK_TRANSPORT: Final = "network.transport"
HOST_NAME: Final = "host.name"

# ---- spanreplay: the run -----------------------------------------------------------------------------------------
SCOPE_NAME: Final = "spanreplay"
"""Instrumentation scope of every span that the Boundary opens."""

RUN_ID: Final = "spanreplay.run.id"
RUN_ROOT: Final = "spanreplay.run.root"
"""bool, only true: this span is the root of the run named by ``spanreplay.run.id``; it is the run, not a step of it."""
RUN_PATH: Final = "spanreplay.run.path"
"""Where in its process this run began: the causal path of the run itself."""
RUN_NAME: Final = "spanreplay.run.name"
RUN_DEFINITION: Final = "spanreplay.run.definition"  # (J) argv, cwd, environment, agent configuration, versions
RUN_DEFINITION_DIGEST: Final = "spanreplay.run.definition.digest"
RUN_CODE: Final = "spanreplay.run.code"  # (J) commit, uncommitted diff, see recording/code.py
RUN_STATE: Final = "spanreplay.run.state"  # (J) files that it started from, see recording/state.py
RUN_VARIABLES: Final = "spanreplay.run.variables"  # (J) name to a mark of its value, see recording/definition.py
RUN_INPUT: Final = "spanreplay.run.input"  # (J) typed
RUN_OUTPUT: Final = "spanreplay.run.output"  # (J) typed
RUN_ARTIFACTS: Final = "spanreplay.run.artifacts"  # (J)
RUN_REDACTION: Final = "spanreplay.run.redaction"  # (J) the redaction policy in force, its salt included, no secrets
RUN_COMMAND_ID: Final = "spanreplay.command.id"
"""Shared by all runs of one recorded command."""
RUN_COMMAND: Final = "spanreplay.command"
"""bool, only true: this run is the recorded command itself, not an agent in it."""
RUN_SEED: Final = "spanreplay.run.seed"
"""What uuids and ``random`` were made from in the command's top process; see shims/randomness.py."""
RUN_RANDOM_SEEDED: Final = "spanreplay.run.random_seeded"
"""``random`` of a recorded block of a process was made from the seed when the block began."""
RUN_CLOCK: Final = "spanreplay.run.clock"  # (J) as STEP_CLOCK: what was read after the last step, until the run ended
RUN_ORDER: Final = "spanreplay.run.order"  # (J) as STEP_ORDER: what was seen after the last step, until the run ended
RUN_HASH_SEED: Final = "spanreplay.run.hash_seed"
"""``PYTHONHASHSEED`` that ``record`` chose for the command."""
RUN_EXIT_CODE: Final = "spanreplay.run.exit_code"
RUN_ERROR: Final = "spanreplay.run.error."  # (J) and the id of a process: the typed exception that has ended it
RUN_ERRORS_KEPT: Final = "spanreplay.run.errors_kept"
"""bool, only true: a process of this command that no such attribute names has not ended by an exception."""
RUN_DROPPED: Final = "spanreplay.run.dropped"
"""int: records that could not be kept while this run was recorded. Earlier versions wrote it; now its process is said to have lost them."""
RUN_UNTAPED: Final = "spanreplay.run.untaped"  # (J) what happened outside every seam, named while recording
SOURCE_LOSSES: Final = "spanreplay.source.losses"
"""List of texts: what an input had lost of this trace before it was written again; on one span of an export, and on none in a store."""
FORKED_FROM: Final = "spanreplay.forked_from"
"""On the root of a run that was recorded while another one was executed again with live calls: that one's run id. A span link leads to its
root."""

# ---- spanreplay: the step ----------------------------------------------------------------------------------------
STEP_KIND: Final = "spanreplay.step.kind"
STEP_NAME: Final = "spanreplay.step.name"
STEP_PATH: Final = "spanreplay.path"
STEP_SEQ_START: Final = "spanreplay.seq.start"
STEP_SEQ_END: Final = "spanreplay.seq.end"
STEP_TURN: Final = "spanreplay.seq.turn"
"""int: of a call that ended on a loop of asyncio, the turn of it: numbers that differ by less than 16 are that many turns apart."""
STEP_FORK: Final = "spanreplay.seq.fork"
"""The last place of the process's order that was taken when the task or thread that made this call was started; absent outside of one."""
PROCESS_ID: Final = "spanreplay.process.id"
STEP_CLOCK: Final = "spanreplay.clock"  # (J) times that the program read before this step, see boundary/clock_reads.py
STEP_ORDER: Final = "spanreplay.order"  # (J) in which jobs and results came before this step, see boundary/orders.py
STEP_PARENT: Final = "spanreplay.parent"
"""Span id of the step inside which this one ran, kept beside the OpenTelemetry parent, which a sampler can lose."""
STEP_INPUT: Final = "spanreplay.input"  # (J) typed; absent where the standard attribute holds the same text
STEP_RESULT: Final = "spanreplay.result"  # (J) typed; absent where the standard attribute holds the same text
STEP_ERROR: Final = "spanreplay.error"  # (J) typed exception
STEP_OUTCOME: Final = "spanreplay.outcome"
STEP_ITEMS: Final = "spanreplay.items"  # (J) list of typed values a stream gave
STEP_LEFT: Final = "spanreplay.left"  # (J) what a tool changed in place: arguments and self, before and after, typed
STEP_LOSSY: Final = "spanreplay.lossy"  # (J) names of the values that could be kept as text only
STEP_REDACTED: Final = "spanreplay.redacted"  # (J) attribute name to number of replacements
STEP_EFFECT: Final = "spanreplay.effect"
STEP_ACTION_ID: Final = "spanreplay.action.id"
STEP_IDEMPOTENCY_KEY: Final = "spanreplay.idempotency_key"
STEP_RESOURCES: Final = "spanreplay.resources"  # (J)
STEP_TARGET: Final = "spanreplay.target"
STEP_REQUESTED_BY: Final = "spanreplay.requested_by"
"""Span id of the model step whose output asked for this call."""
STEP_REQUESTED_IN: Final = "spanreplay.requested_in"
"""Run id of that model step, where it is another run: one that waited for a human, and goes on in this one."""
STEP_ATTEMPT: Final = "spanreplay.attempt"
STEP_RETRY_OF: Final = "spanreplay.retry_of"
STEP_PASSED: Final = "spanreplay.passed"
"""bool, only true: a tool that is an agent. A replay runs its body, and answers the calls in it."""
STEP_ANSWERED_FROM_RUN: Final = "spanreplay.answered_from.run"
"""Of a step that was not live: the run whose record answered it."""
STEP_ANSWERED_FROM_STEP: Final = "spanreplay.answered_from.step"
"""int: the step of that run, by its number."""
STEP_STANDS_FOR: Final = "spanreplay.stands_for.step"
"""int: of a step that was live, the number of the step of the run forked from that it was made in place of."""
STEP_CHANGED: Final = "spanreplay.changed"  # (J) object: what a fork changed of the call or of its result, by key
STEP_SENT: Final = "spanreplay.sent"  # (J) as STEP_INPUT: what a fork sent in place of what was asked
STEP_INJECTED: Final = "spanreplay.injected"
"""The fault that a fork injected here: ``timeout``, ``error``, ``malformed``, ``rejected``, ``slow``."""
STEP_ATTESTED: Final = "spanreplay.attested"
"""bool, only true: another program did this and told of it; nothing of ours was there."""
STEP_DIGESTS: Final = "spanreplay.digests"  # (J) attribute name to [sha256, bytes], so that a cut value is provable

# ---- spanreplay: versions, identity, authority -------------------------------------------------------------------
PROMPT_DIGEST: Final = "spanreplay.prompt.digest"
PROMPT_TEMPLATE: Final = "spanreplay.prompt.template"
PROMPT_REGISTRY: Final = "spanreplay.prompt.registry"
"""Where the prompt was fetched from: ``langfuse``, ``langsmith``, ``mlflow``."""
TOOL_VERSION: Final = "spanreplay.tool.version"
TOOL_SCHEMA_DIGEST: Final = "spanreplay.tool.schema.digest"
TOOL_CODE_DIGEST: Final = "spanreplay.tool.code.digest"
SKILL_DIGEST: Final = "spanreplay.skill.digest"
"""Of all files of the skill."""
SKILLS: Final = "spanreplay.skills"  # (J) list of {"name", "digest"}: the skills loaded before a model call
MCP_SERVER_NAME: Final = "spanreplay.mcp.server.name"
MCP_SERVER_VERSION: Final = "spanreplay.mcp.server.version"
ENVIRONMENT_DIGEST: Final = "spanreplay.environment.digest"
"""Of the variables that a child process was given; no value of them is kept."""
CODE_COMMIT: Final = "vcs.ref.head.revision"
DECISION: Final = "spanreplay.decision"  # (J) outcome, decider, policy, reason, arguments digest, when

# ---- spanreplay: the wire ----------------------------------------------------------------------------------------
WIRE_REQUEST_HEADERS: Final = "spanreplay.wire.request.headers"  # (J) list of [name, value]
WIRE_REQUEST_BODY: Final = "spanreplay.wire.request.body"
WIRE_REQUEST_BODY_ENCODING: Final = "spanreplay.wire.request.body.encoding"
"""``utf-8`` (the attribute is the text) or ``base64``."""
WIRE_RESPONSE_HEADERS: Final = "spanreplay.wire.response.headers"  # (J) list of [name, value], as received
WIRE_RESPONSE_BODY: Final = "spanreplay.wire.response.body"
WIRE_RESPONSE_BODY_ENCODING: Final = "spanreplay.wire.response.body.encoding"
WIRE_RESPONSE_CHUNKS: Final = "spanreplay.wire.response.chunks"  # (J) list of [bytes, nanoseconds since the step began]
WIRE_RESPONSE_COMPLETE: Final = "spanreplay.wire.response.complete"
"""bool: the stream's terminal event was seen, or the body was read to its end."""
WIRE_PROVIDER: Final = "spanreplay.wire.provider"
"""Name of the provider codec that recognised the exchange, for example ``openai.chat``."""

WIRE_PREFIX: Final = "spanreplay.wire."
"""Everything under this prefix is wire content, left off spans unless ``SPANREPLAY_SPAN_CONTENT=full``."""
