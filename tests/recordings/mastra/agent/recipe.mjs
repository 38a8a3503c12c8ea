// The weather scenario with an agent of Mastra and its exporter of OpenTelemetry.
import { createOpenAI } from "@ai-sdk/openai";
import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { Observability } from "@mastra/observability";
import { OtelExporter } from "@mastra/otel-exporter";
import { z } from "zod";

const WEATHER = {
  Paris: { city: "Paris", celsius: 21, sky: "sunny" },
  Oslo: { city: "Oslo", celsius: 4, sky: "rain" },
};
const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL });
const agent = new Agent({
  id: "weather",
  name: "weather",
  instructions: "You are a weather assistant.",
  model: openai.chat("gpt-4o-mini"),
  tools: {
    get_weather: createTool({
      id: "get_weather",
      description: "The weather of a city.",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => WEATHER[city],
    }),
    get_alerts: createTool({
      id: "get_alerts",
      description: "The alerts of a city.",
      inputSchema: z.object({ city: z.string() }),
      execute: async () => {
        throw new Error("alert service unavailable");
      },
    }),
  },
});
const endpoint = `${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`;
const exporter = new OtelExporter({ provider: { custom: { endpoint, protocol: "http/protobuf" } } });
const mastra = new Mastra({
  agents: { weather: agent },
  observability: new Observability({ configs: { otel: { serviceName: "weather", exporters: [exporter] } } }),
});
const said = await mastra.getAgent("weather").generate("What is the weather in Paris and in Oslo?");
console.log(said.text);
await new Promise((resolve) => setTimeout(resolve, 500));
await mastra.shutdown();
