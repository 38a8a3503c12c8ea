"""Schema 6: what goes into every model call of a conversation again, once for the conversation."""

from typing import Final

STATEMENTS: Final = (
    """CREATE TABLE steps_anew (
        run_id VARCHAR, seq BIGINT, kind VARCHAR, name VARCHAR, call_id VARCHAR, trace_id VARCHAR, span_id VARCHAR, parent_seq BIGINT,
        requested_by BIGINT, attempt BIGINT, retry_of BIGINT, agent VARCHAR, outcome VARCHAR, error_type VARCHAR, error_message VARCHAR,
        effect VARCHAR, action_id VARCHAR, target VARCHAR, decision VARCHAR, started_ns BIGINT, ended_ns BIGINT, grade VARCHAR,
        dialect VARCHAR, path VARCHAR, input VARCHAR USING COMPRESSION zstd, output VARCHAR USING COMPRESSION zstd, versions VARCHAR,
        input_tokens BIGINT, output_tokens BIGINT, bytes BIGINT, thread BIGINT)""",
    "INSERT INTO steps_anew BY NAME FROM steps",
    "DROP TABLE steps",
    "ALTER TABLE steps_anew RENAME TO steps",
    "COMMENT ON TABLE steps IS 'Derived: one row a step; (run_id, seq) names it.'",
    "COMMENT ON COLUMN steps.decision IS 'JSON text: who allowed or refused it, and why.'",
    "COMMENT ON COLUMN steps.bytes IS 'Characters of its input and output together; NULL in steps of older versions.'",
    "COMMENT ON COLUMN steps.thread IS 'The conversation that a model call goes on with: seq of its first call; see the table history.'",
    """COMMENT ON COLUMN steps.input IS
        'JSON text; {"arguments": ...} of a tool call; of a model call what is not in history, such as {"params": ...}.'""",
    """COMMENT ON COLUMN steps.output IS
        'JSON text; {"result": ...} of a tool call; of a model call what is not in history, such as {"finish": ...}.'""",
    """CREATE TABLE history (
        run_id VARCHAR, thread BIGINT, part VARCHAR, n BIGINT, label VARCHAR, digest VARCHAR, parts VARCHAR USING COMPRESSION zstd,
        first_seq BIGINT, last_seq BIGINT)""",
    """COMMENT ON TABLE history IS
        'Derived: what went into and came out of model calls, each message from the first to the last call that it went into.'""",
    "COMMENT ON COLUMN history.part IS 'message, tool, system, or output.'",
    "COMMENT ON COLUMN history.n IS 'Its place among those of its part, from 0.'",
    "COMMENT ON COLUMN history.label IS 'The role of a message, the name of a tool.'",
    "COMMENT ON COLUMN history.digest IS 'Of the schema of a tool.'",
    "COMMENT ON COLUMN history.parts IS 'JSON list: literal text of it and digests of its long strings, which are in blobs, by turns.'",
    """CREATE VIEW said AS
        SELECT run_id, thread, part, n, label, any_value(pieces.digest) AS digest, first_seq, last_seq,
            try_cast(string_agg(CASE WHEN place % 2 = 1 THEN piece ELSE blobs.text END, '' ORDER BY place) AS JSON) AS json
        FROM (SELECT * EXCLUDE (list), unnest(list) AS piece, generate_subscripts(list, 1) AS place
            FROM (SELECT * EXCLUDE (parts), from_json(parts, '["VARCHAR"]') AS list FROM history)) pieces
        LEFT JOIN blobs ON place % 2 = 0 AND blobs.key = try_cast('0x' || substr(piece, 8, 16) AS UBIGINT) AND blobs.digest = piece
        GROUP BY run_id, thread, part, n, label, first_seq, last_seq""",
    "COMMENT ON VIEW said IS 'The table history with its texts: messages, tools, instructions and outputs as JSON.'",
    """CREATE OR REPLACE VIEW messages AS
        WITH found AS (
            SELECT steps.run_id, steps.seq, steps.name AS model, steps.agent, CASE part WHEN 'output' THEN part ELSE 'input' END AS side, n,
                json AS message
            FROM steps JOIN said ON said.run_id = steps.run_id AND said.thread = steps.thread
                AND steps.seq BETWEEN said.first_seq AND said.last_seq
            WHERE steps.kind = 'model_call' AND part IN ('message', 'output')
            UNION ALL
            SELECT run_id, seq, model, agent, side, CAST(m.key AS BIGINT), m.value
            FROM (
                SELECT run_id, seq, name AS model, agent, 'input' AS side, try_cast(input AS JSON)->'messages' AS list
                FROM steps WHERE kind = 'model_call' AND thread IS NULL
                UNION ALL
                SELECT run_id, seq, name, agent, 'output', try_cast(output AS JSON)->'messages' FROM steps WHERE kind = 'model_call'
            ), json_each(CASE WHEN json_type(list) = 'ARRAY' THEN list END) m
        )
        SELECT run_id, seq, model, agent, side, n, message->>'role' AS role,
            array_to_string(message->>'$.parts[*].content', ' ') AS text, message
        FROM found""",
    "COMMENT ON VIEW messages IS 'Each message that went into or came out of a model call, as often as it did.'",
    """CREATE VIEW conversations AS
        SELECT run_id, thread, n, label AS role, first_seq, last_seq, array_to_string(json->>'$.parts[*].content', ' ') AS text,
            json AS message
        FROM said WHERE part = 'message'""",
    "COMMENT ON VIEW conversations IS 'Each message that went into model calls once, with the first and the last call that it went into.'",
    """CREATE VIEW tools_offered AS
        SELECT run_id, thread, label AS tool, first_seq, last_seq, json AS schema, digest FROM said WHERE part = 'tool'""",
    "COMMENT ON VIEW tools_offered IS 'Tools as models were shown them: a changed schema is another digest.'",
)
