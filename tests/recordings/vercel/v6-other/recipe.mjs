// What else the Vercel AI SDK 6 has spans for: an object, a streamed object, embeddings, a ranking, reasoning, a file, a refused approval.
import { createOpenAI } from "@ai-sdk/openai";
import { trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { embedMany, generateObject, generateText, rerank, streamObject, tool } from "ai";
import { MockEmbeddingModelV3, MockLanguageModelV3, MockRerankingModelV3 } from "ai/test";
import { z } from "zod";

const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter())] });
provider.register();

const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL });
const schema = z.object({ city: z.string(), celsius: z.number() });
const telemetry = (functionId) => ({ isEnabled: true, functionId });

async function work() {
  const prompt = "The weather in Paris as an object.";
  const model = openai.chat("gpt-4o-mini");
  await generateObject({ model, schema, prompt, experimental_telemetry: telemetry("object") });
  const streamed = streamObject({ model, schema, prompt, experimental_telemetry: telemetry("streamed object") });
  for await (const part of streamed.partialObjectStream) void part;
  await embedMany({
    model: new MockEmbeddingModelV3({
      maxEmbeddingsPerCall: 5,
      doEmbed: async ({ values }) => ({ embeddings: values.map((text) => [text.length, 0.5]), usage: { tokens: 4 }, warnings: [] }),
    }),
    values: ["Paris", "Oslo"],
    experimental_telemetry: telemetry("embeddings"),
  });
  await rerank({
    model: new MockRerankingModelV3({
      doRerank: async () => ({ ranking: [{ index: 1, relevanceScore: 0.9 }, { index: 0, relevanceScore: 0.1 }] }),
    }),
    query: "rain",
    documents: ["Paris is sunny.", "Oslo has rain."],
    experimental_telemetry: telemetry("ranking"),
  });
  await generateText({
    model: new MockLanguageModelV3({
      modelId: "thinker",
      doGenerate: async () => ({
        content: [
          { type: "reasoning", text: "The picture shows rain." },
          { type: "text", text: "Rain." },
        ],
        finishReason: { unified: "stop", raw: "stop" },
        usage: {
          inputTokens: { total: 20, noCache: 12, cacheRead: 8, cacheWrite: 0 },
          outputTokens: { total: 9, text: 2, reasoning: 7 },
        },
        warnings: [],
      }),
    }),
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What is the weather on this picture?" },
          { type: "file", mediaType: "image/png", data: "aGVsbG8=" },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "I need the map." },
          { type: "tool-call", toolCallId: "call_map", toolName: "get_map", input: { city: "Oslo" } },
          { type: "tool-call", toolCallId: "call_pay", toolName: "pay", input: { euros: 5 } },
          { type: "tool-approval-request", approvalId: "approval_1", toolCallId: "call_pay" },
        ],
      },
      {
        role: "tool",
        content: [
          { type: "tool-result", toolCallId: "call_map", toolName: "get_map", output: { type: "error-text", value: "no map" } },
          { type: "tool-approval-response", approvalId: "approval_1", approved: false, reason: "too expensive" },
          { type: "tool-result", toolCallId: "call_pay", toolName: "pay", output: { type: "execution-denied", reason: "too expensive" } },
        ],
      },
    ],
    tools: { get_map: tool({ inputSchema: z.object({ city: z.string() }) }), pay: tool({ inputSchema: z.object({ euros: z.number() }) }) },
    experimental_telemetry: telemetry("picture"),
  });
}

await trace.getTracer("app").startActiveSpan("request", async (span) => {
  await work();
  span.end();
});
await provider.shutdown();
