// Claude Code with a subagent and the shell, one command of which fails; its beta traces alone are on, without content.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const { PATH, HOME, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, OTEL_EXPORTER_OTLP_ENDPOINT } = process.env;
const options = ["--system-prompt", "You are a weather assistant.", "--tools", "Bash,Agent", "--allowedTools", "Bash,Agent"];
const done = spawnSync(
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
      OTEL_TRACES_EXPORTER: "otlp",
      OTEL_EXPORTER_OTLP_ENDPOINT,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
    },
  },
);
process.exitCode = done.status ?? 1;
