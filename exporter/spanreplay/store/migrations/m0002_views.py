"""Schema 2: the views that people ask."""

from typing import Final

STATEMENTS: Final = (
    """CREATE VIEW processes AS
        SELECT process, any_value(host) AS host, any_value(pid) AS pid, min(started_ns) AS started_ns, any_value(argv) AS argv,
            any_value(python) AS python, any_value(versions) AS versions, any_value(forked_from) AS forked_from, count(*) AS journals,
            sum(records) AS records, sum(dropped) AS dropped, sum(crc_errors) AS crc_errors, bool_and(closed OR removed) AS ended
        FROM journals GROUP BY process""",
    "COMMENT ON VIEW processes IS 'Processes that recorded; process is spanreplay.process.id.'",
    """CREATE VIEW tool_calls AS
        SELECT run_id, seq, name AS tool, call_id, agent, outcome, error_type, error_message, effect,
            (ended_ns - started_ns) / 1e6 AS duration_ms, make_timestamp_ns(started_ns) AS started,
            try_cast(input AS JSON)->'arguments' AS arguments, try_cast(output AS JSON)->'result' AS result,
            requested_by, attempt, retry_of, grade, started_ns, ended_ns, trace_id, span_id
        FROM steps WHERE kind = 'tool_call'""",
    "COMMENT ON VIEW tool_calls IS 'Steps that called a tool, with arguments and result as JSON.'",
    """CREATE VIEW model_calls AS
        SELECT run_id, seq, name AS model, agent, outcome, error_type, error_message, input_tokens, output_tokens,
            (ended_ns - started_ns) / 1e6 AS duration_ms, make_timestamp_ns(started_ns) AS started,
            attempt, retry_of, grade, versions, started_ns, ended_ns, trace_id, span_id
        FROM steps WHERE kind = 'model_call'""",
    "COMMENT ON VIEW model_calls IS 'Steps that called a model; their messages are in the view messages.'",
    """CREATE VIEW messages AS
        WITH sides AS (
            SELECT run_id, seq, name AS model, agent, 'input' AS side, try_cast(input AS JSON)->'messages' AS messages
            FROM steps WHERE kind = 'model_call'
            UNION ALL
            SELECT run_id, seq, name, agent, 'output', try_cast(output AS JSON)->'messages' FROM steps WHERE kind = 'model_call'
        )
        SELECT run_id, seq, model, agent, side, CAST(m.key AS BIGINT) AS n, m.value->>'role' AS role,
            array_to_string(m.value->>'$.parts[*].content', ' ') AS text, m.value AS message
        FROM sides, json_each(CASE WHEN json_type(messages) = 'ARRAY' THEN messages END) m""",
    "COMMENT ON VIEW messages IS 'Each message that went into or came out of a model call.'",
    """CREATE VIEW decisions AS
        SELECT run_id, seq, kind, name, call_id, agent, effect, outcome, decision->>'outcome' AS decision, decision->>'reason' AS reason,
            steps.decision AS record, started_ns, trace_id, span_id
        FROM steps WHERE steps.decision IS NOT NULL AND json_valid(steps.decision)""",
    "COMMENT ON VIEW decisions IS 'Steps that somebody or a policy allowed or refused.'",
    """CREATE VIEW versions AS
        SELECT run_id, seq, kind, name, v.key AS what, v.value AS version, v.value->>'$' AS version_text
        FROM steps, json_each(CASE WHEN json_valid(versions) THEN versions END) v""",
    "COMMENT ON VIEW versions IS 'What was in force at each step: prompt, tool, model, skill, code.'",
)
