// The weather scenario with Gemini CLI, its tools behind an MCP server; its telemetry is on as it comes.
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const WEATHER = {
  Paris: { city: "Paris", celsius: 21, sky: "sunny" },
  Oslo: { city: "Oslo", celsius: 4, sky: "rain" },
};

const BUILT_IN = (
  "update_topic list_directory read_file grep_search glob replace write_file web_fetch run_shell_command list_background_processes " +
  "read_background_output google_web_search write_todos enter_plan_mode invoke_agent activate_skill"
).split(" ");

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
  const { PATH, HOME, GOOGLE_GEMINI_BASE_URL, GEMINI_API_KEY, OTEL_EXPORTER_OTLP_ENDPOINT } = process.env;
  const telemetry = { enabled: true, target: "local", otlpProtocol: "http" };
  const settings = {
    security: { auth: { selectedType: "gemini-api-key" } },
    privacy: { usageStatisticsEnabled: false },
    general: { enableAutoUpdate: false },
    tools: { exclude: BUILT_IN },
    mcpServers: { weather: { command: process.execPath, args: [here, "serve"], trust: true } },
    telemetry: { ...telemetry, otlpEndpoint: OTEL_EXPORTER_OTLP_ENDPOINT },
  };
  mkdirSync(join(HOME, ".gemini"));
  writeFileSync(join(HOME, ".gemini", "settings.json"), JSON.stringify(settings));
  writeFileSync("system.md", "You are a weather assistant.");
  mkdirSync("work");
  const done = spawnSync(
    join(dirname(here), "node_modules/.bin/gemini"),
    ["-p", "What is the weather in Paris and in Oslo?", "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "--skip-trust"],
    {
      stdio: ["ignore", "inherit", "inherit"],
      cwd: join(process.cwd(), "work"),
      env: { PATH, HOME, GOOGLE_GEMINI_BASE_URL, GEMINI_API_KEY, GEMINI_SYSTEM_MD: join(process.cwd(), "system.md") },
    },
  );
  process.exitCode = done.status ?? 1;
}

await (process.argv[2] === "serve" ? serve() : run());
