import type { ModelSpec, RunnerSettings } from "./model-spec.ts";

const extension: string = import.meta.url.endsWith(".ts") ? "ts" : "js";

/** The models that come with the package: no file to find, nothing to download. */
export const builtinModels: Readonly<Record<"use-lite" | "mlp", (settings?: RunnerSettings) => ModelSpec>> = {
  "use-lite": (settings = {}) => ({
    name: "use-lite",
    task: "embedding",
    workerUrl: new URL(`./use-lite-worker.${extension}`, import.meta.url),
    data: { intraOpNumThreads: settings.intraOpNumThreads ?? 1 },
    input: { kind: "text", maxTokens: 128 },
    output: { kind: "vector", length: 512 },
    note: "Universal Sentence Encoder Lite: English, 512-d unit vectors, texts cut at 128 tokens.",
  }),
  mlp: (settings = {}) => ({
    name: "mlp",
    task: "tensor",
    workerUrl: new URL(`./mlp-worker.${extension}`, import.meta.url),
    data: { intraOpNumThreads: settings.intraOpNumThreads ?? 1 },
    input: { kind: "floats", length: 768 },
    output: { kind: "vector", length: 768 },
    note: "A seeded 768-3072-768 network with random weights, for load tests.",
  }),
};
