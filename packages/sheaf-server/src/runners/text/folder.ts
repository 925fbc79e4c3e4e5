import { basename, resolve } from "node:path";
import { workerProcess } from "sheaf/node";
import { batchVerdict } from "../self-test/batch-verdict.ts";
import { inspectionExecutor } from "../workers/inspection.ts";
import type { ModuleSpec, RunnerSettings } from "../contract/model-spec.ts";
import type { TextInspection, TextInspectionRequest } from "./text-inspection-worker.ts";
import type { FolderSettings } from "./folder-settings.ts";
import { readRanges } from "./ranges.ts";
import { textWeights } from "./token-rate.ts";
import { workerModule } from "../workers/worker-module.ts";

/** The tokens at a text's start and end. */
const ownTokens = 2;

/** Largest batch: smaller ones pad more (`npm run bench -- text`), and WebGPU compiles for each size. */
const batchTexts = 128;

/** Most tokens in a batch: about a second of a small encoder on a CPU, which a new request may have to wait. */
const maxBatchTokens = { cpu: 4_096, gpu: 16_384 };

/**
 * A model of a folder in the Hugging Face layout, on one device: sentence embeddings, text classification or a cross-encoder.
 * @throws {Error} naming the folder and the part that is missing, broken or not served.
 */
export async function textFolderSpec(folder: string, settings: RunnerSettings = {}): Promise<ModuleSpec> {
  const path = resolve(folder);
  const { intraOpNumThreads = 1, device = "cpu", maxBatchSize, modelFile, pooling: given } = settings;
  const ask = inspectionExecutor(
    // A broken tokenizer.json makes Hugging Face's library exit the process.
    workerProcess<TextInspectionRequest, TextInspection>(workerModule("text-inspection-worker", import.meta.url), {
      name: path,
    }),
    settings.signal,
  );
  const session = { intraOpNumThreads, device, maxBatchSize };
  const found = await ask({ folder: path, modelFile, pooling: given, ...session }).catch((error: unknown) => {
    throw new Error(`${folder} cannot be served: ${(error as Error).message}`, { cause: error });
  });
  const { task, maxTokens, labels, dimensions, prompts, truncationSide } = found.settings;
  const pooling = poolingOf(found.settings);
  const ranges = readRanges(path);
  const verdict = batchVerdict(found.selfTest, settings);
  return {
    name: basename(path),
    workerUrl: workerModule("text-worker", import.meta.url),
    data: { folder: path, settings: found.settings, ...session },
    input:
      task === "rerank"
        ? { kind: "text-pair", maxTokens }
        : { kind: "text", maxTokens, prompts, ...(task === "classification" && { takesPairs: true }) },
    output:
      task === "rerank"
        ? { kind: "score" }
        : task === "classification"
          ? { kind: "labels", labels }
          : {
              kind: "vector",
              length: found.vectorLength,
              ...(pooling !== undefined && { pooling }),
              ...(dimensions && { dimensions }),
              ...(ranges && { ranges }),
            },
    ...verdict,
    ...(found.isOneByOne && { maxBatchSize: 1 }),
    ...textWeights({ maxTokens, ownTokens, side: truncationSide }),
    // The worker runs texts of similar length together; with more to choose from it pads less.
    batchSize: device === "webgpu" ? undefined : batchTexts,
    batchWeight: "apart",
    maxBatchWeight: Math.max(maxBatchTokens[device === "cpu" ? "cpu" : "gpu"], maxTokens),
    note: noteOf(found, verdict.warning),
    unreadFields: found.settings.unreadFields,
  };
}

function poolingOf({ modules: [first] }: FolderSettings): string | undefined {
  return first?.type === "pooling" ? first.modes.join("+") : undefined;
}

function noteOf({ settings, isOneByOne }: TextInspection, warning: string | undefined): string {
  const { task, maxTokens, modules, isPoolingGiven } = settings;
  const sentences = [`Texts are cut at ${maxTokens} tokens.`];
  if (task === "embedding") {
    const isNormalized = modules.some(({ type }) => type === "normalize");
    const pooling = isPoolingGiven ? "" : " (the folder names none: see POOLING)";
    sentences.push(`${poolingOf(settings)} pooling${pooling}, ${isNormalized ? "" : "not "}normalised.`);
  }
  if (isOneByOne) sentences.push("Its batch axis is fixed at 1: texts run one by one.");
  if (warning !== undefined) sentences.push(warning);
  return sentences.join(" ");
}
