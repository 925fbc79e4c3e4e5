import type { ModuleSpec, RunnerSettings } from "./contract/model-spec.ts";
import type { SessionSettings } from "./onnx/session.ts";
import { workerModule } from "./workers/worker-module.ts";

/** The models that come with the package: no file to find, nothing to download. */
export const builtinModels: Readonly<Record<"use-lite" | "mlp", (settings?: RunnerSettings) => ModuleSpec>> = {
  "use-lite": (settings = {}) => ({
    name: "use-lite",
    workerUrl: workerModule("use-lite/use-lite-worker", import.meta.url),
    data: sessionSettings(settings),
    input: { kind: "text", maxTokens: 128 },
    output: { kind: "vector", length: 512 },
    isCacheable: true,
    note: "Universal Sentence Encoder Lite: English, 512-d unit vectors, texts cut at 128 tokens. Also answers /rerank, by the cosine of the vectors.",
  }),
  mlp: (settings = {}) => ({
    name: "mlp",
    workerUrl: workerModule("mlp-worker", import.meta.url),
    data: sessionSettings(settings),
    input: { kind: "floats", length: 768 },
    output: { kind: "vector", length: 768 },
    isCacheable: true,
    note: "A seeded 768-3072-768 network with random weights, for load tests.",
  }),
};

function sessionSettings({ intraOpNumThreads = 1, device = "cpu", maxBatchSize }: RunnerSettings): SessionSettings {
  return { intraOpNumThreads, device, maxBatchSize };
}
