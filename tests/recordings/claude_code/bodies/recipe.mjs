// The weather scenario with Claude Code, its tools behind an MCP server; traces (beta), log events and the bodies of its requests on.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const WEATHER = {
  Paris: { city: "Paris", celsius: 21, sky: "sunny" },
  Oslo: { city: "Oslo", celsius: 4, sky: "rain" },
};

async function serve() {
  const server = new McpServer({ name: "weather", version: "1.0.0" });
  const inputSchema = { city: z.string() };
  server.registerTool("get_weather", { description: "The weather of a city.", inputSchema }, async ({ city }) => ({
    content: [{ type: "text", text: JSON.stringify(WEATHER[city]) }],
  }));
  server.registerTool("get_alerts", { description: "The alerts of a city.", inputSchema }, async () => {
    throw new Error("alert service unavailable");
  });
  await server.connect(new StdioServerTransport());
}

function run() {
  const here = fileURLToPath(import.meta.url);
  const config = join(process.cwd(), "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { weather: { command: process.execPath, args: [here, "serve"] } } }));
  const { PATH, HOME, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, OTEL_EXPORTER_OTLP_ENDPOINT } = process.env;
  const options = ["--system-prompt", "You are a weather assistant.", "--tools", "", "--allowedTools", "mcp__weather"];
  const done = spawnSync(
    join(dirname(here), "node_modules/.bin/claude"),
    ["-p", "What is the weather in Paris and in Oslo?", "--model", "claude-sonnet-4-5", "--mcp-config", config, ...options],
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
        OTEL_LOGS_EXPORTER: "otlp",
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
        OTEL_EXPORTER_OTLP_ENDPOINT,
        OTEL_LOG_USER_PROMPTS: "1",
        OTEL_LOG_TOOL_DETAILS: "1",
        OTEL_LOG_TOOL_CONTENT: "1",
        OTEL_LOG_RAW_API_BODIES: "1",
      },
    },
  );
  process.exitCode = done.status ?? 1;
}

await (process.argv[2] === "serve" ? serve() : run());
