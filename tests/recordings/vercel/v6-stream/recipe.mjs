// The weather scenario with streamText of the Vercel AI SDK 6 and its own telemetry.
import { createOpenAI } from "@ai-sdk/openai";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter())] });
provider.register();

const WEATHER = {
  Paris: { city: "Paris", celsius: 21, sky: "sunny" },
  Oslo: { city: "Oslo", celsius: 4, sky: "rain" },
};
const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL });

const answer = streamText({
  model: openai.chat("gpt-4o-mini"),
  system: "You are a weather assistant.",
  prompt: "What is the weather in Paris and in Oslo?",
  temperature: 0,
  stopWhen: stepCountIs(5),
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
  experimental_telemetry: { isEnabled: true, functionId: "weather", metadata: { sessionId: "session-1" } },
});
await answer.consumeStream();
await provider.shutdown();
