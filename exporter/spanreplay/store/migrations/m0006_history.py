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
    'COMMENT ON COLUMN steps.output IS \'JSON text; {"messages": ...} of a model call, {"result": ...} of a tool call.\'',
    "COMMENT ON COLUMN steps.decision IS 'JSON text: who allowed or refused it, and why.'",
    "COMMENT ON COLUMN steps.bytes IS 'Characters of its input and output together; NULL in steps of older versions.'",
    "COMMENT ON COLUMN steps.thread IS 'The conversation that a model call goes on with: seq of its first call; see the table history.'",
    """COMMENT ON COLUMN steps.input IS
        'JSON text; {"arguments": ...} of a tool call; of a model call what is not in history, such as {"params": ...}.'""",
    """CREATE TABLE history (
        run_id VARCHAR, thread BIGINT, part VARCHAR, n BIGINT, label VARCHAR, digest VARCHAR, key UBIGINT,
        first_seq BIGINT, last_seq BIGINT)""",
    """COMMENT ON TABLE history IS
        'Derived: messages, tools and instructions that went into model calls, each from the first to the last call that it went into.'""",
    "COMMENT ON COLUMN history.part IS 'message, tool or system.'",
    "COMMENT ON COLUMN history.n IS 'Its place among those of its part, from 0.'",
    "COMMENT ON COLUMN history.label IS 'The role of a message, the name of a tool.'",
    "COMMENT ON COLUMN history.digest IS 'Of its JSON, which is in blobs; key is there too.'",
    """CREATE OR REPLACE VIEW messages AS
        WITH found AS (
            SELECT steps.run_id, steps.seq, steps.name AS model, steps.agent, 'input' AS side, history.n, history.digest,
                try_cast(blobs.text AS JSON) AS message
            FROM steps JOIN history ON history.run_id = steps.run_id AND history.thread = steps.thread
                AND steps.seq BETWEEN history.first_seq AND history.last_seq
            JOIN blobs ON blobs.key = history.key AND blobs.digest = history.digest
            WHERE steps.kind = 'model_call' AND history.part = 'message'
            UNION ALL
            SELECT run_id, seq, model, agent, side, CAST(m.key AS BIGINT), NULL, m.value
            FROM (
                SELECT run_id, seq, name AS model, agent, 'input' AS side, try_cast(input AS JSON)->'messages' AS list
                FROM steps WHERE kind = 'model_call' AND thread IS NULL
                UNION ALL
                SELECT run_id, seq, name, agent, 'output', try_cast(output AS JSON)->'messages' FROM steps WHERE kind = 'model_call'
            ), json_each(CASE WHEN json_type(list) = 'ARRAY' THEN list END) m
        )
        SELECT run_id, seq, model, agent, side, n, message->>'role' AS role,
            array_to_string(message->>'$.parts[*].content', ' ') AS text, message, digest
        FROM found""",
    "COMMENT ON VIEW messages IS 'Each message that went into or came out of a model call, as often as it did.'",
    """CREATE VIEW conversations AS
        SELECT history.run_id, thread, n, label AS role, first_seq, last_seq,
            array_to_string(try_cast(blobs.text AS JSON)->>'$.parts[*].content', ' ') AS text, try_cast(blobs.text AS JSON) AS message,
            history.digest
        FROM history JOIN blobs ON blobs.key = history.key AND blobs.digest = history.digest WHERE part = 'message'""",
    "COMMENT ON VIEW conversations IS 'Each message that went into model calls once, with the first and the last call that it went into.'",
    """CREATE VIEW tools_offered AS
        SELECT history.run_id, thread, label AS tool, first_seq, last_seq, try_cast(blobs.text AS JSON) AS schema, history.digest
        FROM history JOIN blobs ON blobs.key = history.key AND blobs.digest = history.digest WHERE part = 'tool'""",
    "COMMENT ON VIEW tools_offered IS 'Tools as models were shown them: a changed schema is another digest.'",
)
