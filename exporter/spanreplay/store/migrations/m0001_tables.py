"""Schema 1: the tables.

Kept so that a DuckLake catalog can hold the same tables: no primary key, no unique constraint, no index, no sequence, no generated column.
"""

from typing import Final

_SPAN_COLUMNS: Final = """
    trace_id VARCHAR, span_id VARCHAR, parent_span_id VARCHAR,
    name VARCHAR, kind SMALLINT, start_ns BIGINT, end_ns BIGINT, status SMALLINT, status_message VARCHAR,
    run_id VARCHAR, command_id VARCHAR, process VARCHAR, seq_start BIGINT, seq_end BIGINT, path VARCHAR, step_kind VARCHAR,
    op VARCHAR, agent VARCHAR, provider VARCHAR, model VARCHAR, tool VARCHAR, call_id VARCHAR, conversation VARCHAR,
    prompt_name VARCHAR, prompt_version VARCHAR, input_tokens BIGINT, output_tokens BIGINT,
    error_type VARCHAR, outcome VARCHAR, effect VARCHAR, service VARCHAR,
    attributes VARCHAR, events VARCHAR, links VARCHAR, resource VARCHAR,
    scope VARCHAR, scope_version VARCHAR, scope_json VARCHAR,
    trace_state VARCHAR, flags BIGINT, dropped_attributes BIGINT, dropped_events BIGINT, dropped_links BIGINT,
    exact VARCHAR, origin VARCHAR, complete BOOLEAN, started BOOLEAN, digest VARCHAR
"""

STATEMENTS: Final = (
    "CREATE TABLE meta (key VARCHAR, value VARCHAR)",
    "COMMENT ON TABLE meta IS 'Facts about the store: when and by which version it was made.'",
    """CREATE TABLE journals (
        name VARCHAR, bytes_done BIGINT, host VARCHAR, pid BIGINT, process VARCHAR, forked_from VARCHAR, started_ns BIGINT,
        argv VARCHAR, python VARCHAR, versions VARCHAR, records BIGINT, crc_errors BIGINT, dropped BIGINT, closed BOOLEAN, removed BOOLEAN,
        locks BOOLEAN)""",
    "COMMENT ON TABLE journals IS 'One row a journal file, kept after the file is gone: how much of it is loaded, and what was lost.'",
    "COMMENT ON COLUMN journals.bytes_done IS 'Loaded up to this byte, in the same transaction as the rows.'",
    "COMMENT ON COLUMN journals.crc_errors IS 'Lines skipped because their checksum did not match: torn by a kill or a full disk.'",
    "COMMENT ON COLUMN journals.dropped IS 'Records that the process could not write.'",
    f"CREATE TABLE spans ({_SPAN_COLUMNS})",
    "COMMENT ON TABLE spans IS 'Every span, the fullest version of each. Times are nanoseconds since the epoch, ids lower-case hex.'",
    "COMMENT ON COLUMN spans.end_ns IS 'NULL while open, and for ever if the process died.'",
    "COMMENT ON COLUMN spans.kind IS '0 unspecified, 1 internal, 2 server, 3 client, 4 producer, 5 consumer.'",
    "COMMENT ON COLUMN spans.status IS '0 unset, 1 ok, 2 error.'",
    """COMMENT ON COLUMN spans.attributes IS
        'JSON. {"$blob": digest} is the text of that digest in blobs; $bytes, $double, $int, $map: see the documentation.'""",
    "COMMENT ON COLUMN spans.resource IS 'Digest of the resource, whose JSON is in blobs.'",
    "COMMENT ON COLUMN spans.scope_json IS 'The whole scope, where it has more than a name and a version.'",
    "COMMENT ON COLUMN spans.exact IS 'JSON: fields whose column cannot hold them exactly, such as a name with lone surrogates.'",
    "COMMENT ON COLUMN spans.origin IS 'Who delivered it: recorder, exporter, import, receiver.'",
    "COMMENT ON COLUMN spans.complete IS 'Both its start and its end are here.'",
    "COMMENT ON COLUMN spans.started IS 'Its start is here; false when only an end or an addition has arrived.'",
    "COMMENT ON COLUMN spans.digest IS 'sha256 of its whole content.'",
    f"CREATE TABLE span_versions ({_SPAN_COLUMNS})",
    "COMMENT ON TABLE span_versions IS 'The less full ones where spans with the same trace and span id differ.'",
    """CREATE TABLE logs (
        trace_id VARCHAR, span_id VARCHAR, time_ns BIGINT, event_name VARCHAR, severity SMALLINT, body VARCHAR, record VARCHAR,
        origin VARCHAR, digest VARCHAR)""",
    "COMMENT ON TABLE logs IS 'Log records that may carry content of a span.'",
    "COMMENT ON COLUMN logs.record IS 'The whole record as JSON.'",
    "CREATE TABLE blobs (digest VARCHAR, bytes BIGINT, media VARCHAR, text VARCHAR, data BLOB)",
    "COMMENT ON TABLE blobs IS 'Content kept once: text where it is valid UTF-8, data where it is not.'",
    "COMMENT ON COLUMN blobs.digest IS 'sha256: and the hex digest of its bytes.'",
    "CREATE TABLE stale (trace_id VARCHAR, generation BIGINT)",
    "COMMENT ON TABLE stale IS 'Traces that have changed since their runs were last derived.'",
    """CREATE TABLE runs (
        run_id VARCHAR, session_id VARCHAR, agent VARCHAR, agent_version VARCHAR, model VARCHAR, service VARCHAR,
        started_ns BIGINT, ended_ns BIGINT, outcome VARCHAR, grade VARCHAR, n_steps BIGINT, model_calls BIGINT, tool_calls BIGINT,
        input_tokens BIGINT, output_tokens BIGINT, command_id VARCHAR, is_command BOOLEAN, origin VARCHAR, dropped BIGINT,
        error_type VARCHAR, error_message VARCHAR, input VARCHAR, output VARCHAR, versions VARCHAR)""",
    "COMMENT ON TABLE runs IS 'Derived: one row a run.'",
    "COMMENT ON COLUMN runs.grade IS 'exact, semantic, structure or incomplete: how well it can be replayed.'",
    "COMMENT ON COLUMN runs.is_command IS 'This run is the recorded command itself.'",
    "COMMENT ON COLUMN runs.dropped IS 'Records that could not be kept while it was recorded.'",
    "COMMENT ON COLUMN runs.versions IS 'JSON: versions seen in it, by kind.'",
    "CREATE TABLE run_traces (run_id VARCHAR, trace_id VARCHAR)",
    "COMMENT ON TABLE run_traces IS 'Derived: which traces a run has spans in.'",
    """CREATE TABLE steps (
        run_id VARCHAR, seq BIGINT, kind VARCHAR, name VARCHAR, call_id VARCHAR, trace_id VARCHAR, span_id VARCHAR, parent_seq BIGINT,
        requested_by BIGINT, attempt BIGINT, retry_of BIGINT, agent VARCHAR, outcome VARCHAR, error_type VARCHAR, error_message VARCHAR,
        effect VARCHAR, action_id VARCHAR, target VARCHAR, decision VARCHAR, started_ns BIGINT, ended_ns BIGINT, grade VARCHAR,
        dialect VARCHAR, path VARCHAR, input VARCHAR, output VARCHAR, versions VARCHAR, input_tokens BIGINT, output_tokens BIGINT)""",
    "COMMENT ON TABLE steps IS 'Derived: one row a step; (run_id, seq) names it.'",
    'COMMENT ON COLUMN steps.input IS \'JSON text; {"messages": ...} of a model call, {"arguments": ...} of a tool call.\'',
    'COMMENT ON COLUMN steps.output IS \'JSON text; {"messages": ...} of a model call, {"result": ...} of a tool call.\'',
    "COMMENT ON COLUMN steps.decision IS 'JSON text: who allowed or refused it, and why.'",
)
