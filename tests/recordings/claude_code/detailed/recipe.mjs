// Claude Code with a subagent and the shell, one command of which fails; the detailed form of its beta traces is on.
// Its log events, which hold the prompts and tools that it comes with, are not kept.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const { PATH, HOME, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, OTEL_EXPORTER_OTLP_ENDPOINT } = process.env;

const traces = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  if (request.url.endsWith("/v1/traces")) {
    const headers = { "content-type": request.headers["content-type"] };
    await fetch(`${OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`, { method: "POST", headers, body });
  }
  response.end();
});
await once(traces.listen(0, "127.0.0.1"), "listening");

const options = ["--system-prompt", "You are a weather assistant.", "--tools", "Bash,Agent", "--allowedTools", "Bash,Agent"];
const claude = spawn(
  join(dirname(fileURLToPath(import.meta.url)), "node_modules/.bin/claude"),
  ["-p", "What is the weather in Paris?", "--model", "claude-sonnet-4-5", ...options],
  {
    stdio: ["ignore", "inherit", "inherit"],
    env: {
      PATH,
      HOME,
      ANTHROPIC_BASE_URL,
      ANTHROPIC_API_KEY,
      DISABLE_AUTOUPDATER: "1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      CLAUDE_CODE_ENABLE_TELEMETRY: "1",
      CLAUDE_CODE_ENHANCED_TELEMETRY_BETA: "1",
      ENABLE_BETA_TRACING_DETAILED: "1",
      BETA_TRACING_ENDPOINT: `http://127.0.0.1:${traces.address().port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
      OTEL_LOG_USER_PROMPTS: "1",
      OTEL_LOG_TOOL_DETAILS: "1",
      OTEL_LOG_TOOL_CONTENT: "1",
    },
  },
);
[process.exitCode] = await once(claude, "exit");
traces.close();
