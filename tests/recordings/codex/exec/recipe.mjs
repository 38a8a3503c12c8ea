// Codex reads thermometers with the shell; its traces and log events are on, with prompts and answers. Of the hundreds of spans of its inner
// workings only those around and in a request or a tool call are kept.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const { PATH, HOME, OPENAI_BASE_URL, OPENAI_API_KEY, OTEL_EXPORTER_OTLP_ENDPOINT } = process.env;

const KEPT = new Set(
  (
    "turn/start op.dispatch.turn_input codex.turn_input session_task.turn session_task.run run_turn run_hooks_and_record_inputs " +
    "run_sampling_request try_run_sampling_request stream_request model_client.stream_responses_api responses.stream_request " +
    "endpoint_session.stream_encoded_json_with receiving_stream handle_responses handle_output_item_done handle_tool_call_with_source " +
    "exec_command no_such_tool dispatch_tool_call_with_state unified_exec.exec_command unified_exec.open_session"
  ).split(" "),
);

const receiver = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const batch = JSON.parse(Buffer.concat(chunks));
  for (const { scopeSpans } of batch.resourceSpans ?? []) {
    for (const scope of scopeSpans) scope.spans = scope.spans.filter(({ name }) => KEPT.has(name));
  }
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(batch) };
  await fetch(`${OTEL_EXPORTER_OTLP_ENDPOINT}${request.url}`, options);
  response.setHeader("content-type", "application/json").end("{}");
});
await once(receiver.listen(0, "127.0.0.1"), "listening");
const endpoint = `http://127.0.0.1:${receiver.address().port}/v1`;

mkdirSync(join(HOME, ".codex"));
mkdirSync("work");
writeFileSync(
  join(HOME, ".codex", "config.toml"),
  `
model = "gpt-5"
model_provider = "local"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.local]
name = "local"
base_url = "${OPENAI_BASE_URL}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"

[otel]
log_user_prompt = true
log_agent_responses = true

[otel.exporter."otlp-http"]
endpoint = "${endpoint}/logs"
protocol = "json"

[otel.trace_exporter."otlp-http"]
endpoint = "${endpoint}/traces"
protocol = "json"
`,
);
const codex = spawn(
  join(dirname(fileURLToPath(import.meta.url)), "node_modules/.bin/codex"),
  ["exec", "--skip-git-repo-check", "What is the temperature in Paris and in Oslo?"],
  { cwd: "work", stdio: ["ignore", "inherit", "inherit"], env: { PATH, HOME, OPENAI_API_KEY } },
);
[process.exitCode] = await once(codex, "exit");
receiver.close();
