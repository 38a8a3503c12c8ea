// The weather scenario as in ../../vercel/v7, exported by Langfuse's processor.
import { createOpenAI } from "@ai-sdk/openai";
import { OpenTelemetry } from "@ai-sdk/otel";
import { LangfuseSpanProcessor } from "@langfuse/otel";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { generateText, isStepCount, registerTelemetry, tool } from "ai";
import { z } from "zod";

const provider = new NodeTracerProvider({ spanProcessors: [new LangfuseSpanProcessor({ exporter: new OTLPTraceExporter(), exportMode: "immediate" })] });
provider.register();
registerTelemetry(new OpenTelemetry());

const WEATHER = {
  Paris: { city: "Paris", celsius: 21, sky: "sunny" },
  Oslo: { city: "Oslo", celsius: 4, sky: "rain" },
};
const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL });

await generateText({
  model: openai.chat("gpt-4o-mini"),
  instructions: "You are a weather assistant.",
  prompt: "What is the weather in Paris and in Oslo?",
  temperature: 0,
  stopWhen: isStepCount(5),
  tools: {
    get_weather: tool({
      description: "The weather of a city.",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => WEATHER[city],
    }),
    get_alerts: tool({
      description: "The alerts of a city.",
      inputSchema: z.object({ city: z.string() }),
      execute: async () => {
        throw new Error("alert service unavailable");
      },
    }),
  },
  telemetry: { functionId: "weather" },
});
await provider.shutdown();
