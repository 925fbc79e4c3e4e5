import { selfTest, type SelfTest } from "sheaf/models";
import { defineWorker, type WorkerDefinition } from "sheaf/node";
import { readFolder, type FolderOptions, type FolderSettings } from "./folder-settings.ts";
import { farTexts } from "../self-test/neighbours.ts";
import type { SessionSettings } from "../onnx/session.ts";
import { loadTextModel, runTogether, type TextItem, type TextResult } from "./model.ts";

export interface TextInspectionRequest extends SessionSettings, FolderOptions {
  readonly folder: string;
}

export interface TextInspection {
  readonly settings: FolderSettings;
  readonly vectorLength: number;
  readonly isOneByOne: boolean;
  readonly selfTest: SelfTest;
}

const words: readonly string[] = ["a", "The cat sits outside, 3 of 4!", "zebra"];

async function inspect({ folder, modelFile, pooling, ...session }: TextInspectionRequest): Promise<TextInspection> {
  const settings = readFolder(folder, { modelFile, pooling });
  const model = await loadTextModel({ folder, settings, ...session });
  try {
    const itemOf = (text: string): TextItem => (settings.task === "rerank" ? { query: "cat", text } : text);
    const items = words.map(itemOf);
    const [first, ...others] = await runTogether(items, model);
    const vectorLength = first?.vector?.length ?? 0;
    if (others.some(({ vector }) => (vector?.length ?? 0) !== vectorLength))
      throw new Error(
        `${settings.modelPath}: ${model.graph.output} has a different length for each text; an embedding has one length`,
      );
    const result = await selfTest((batch) => runTogether(batch as TextItem[], model), items, {
      maxBatchSize: session.maxBatchSize,
      neighbours: farTexts.map(itemOf),
    });
    checkLengths(first, vectorLength, model.settings);
    return {
      settings: model.settings,
      vectorLength,
      isOneByOne: model.graph.isOneByOne,
      selfTest: result,
    };
  } finally {
    await model.session.release();
  }
}

/** @throws {Error} the graph gives other lengths than the folder's files say. */
function checkLengths(
  first: TextResult | undefined,
  vectorLength: number,
  { task, labels, dimensions = [] }: FolderSettings,
): void {
  const scores = first?.logits?.length ?? 0;
  if (task === "classification" && scores !== labels.length)
    throw new Error(`The model gives ${scores} scores for ${labels.length} labels.`);
  if (dimensions === "any") return;
  const longer = dimensions.find((length) => length > vectorLength);
  if (task === "embedding" && longer !== undefined)
    throw new Error(`The model gives vectors of ${vectorLength} numbers, and matryoshka_dimensions has ${longer}.`);
}

const worker: WorkerDefinition<TextInspectionRequest, TextInspection | Error> = defineWorker({
  run: (requests: TextInspectionRequest[]) =>
    Promise.all(
      requests.map((request) =>
        inspect(request).catch((error: unknown) => (error instanceof Error ? error : new Error(String(error)))),
      ),
    ),
});
export default worker;
