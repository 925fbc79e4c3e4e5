import { selfTest, type SelfTest } from "sheaf/models";
import { defineWorker, type WorkerDefinition } from "sheaf/node";
import { readFolder, type FolderSettings } from "./folder-settings.ts";
import type { SessionSettings } from "../onnx/session.ts";
import { loadTextModel, runTogether, type TextItem } from "./model.ts";

export interface TextInspectionRequest extends SessionSettings {
  readonly folder: string;
}

/** The findings of an inspection of a folder and a few runs. */
export interface TextInspection {
  readonly settings: FolderSettings;
  readonly vectorLength: number;
  readonly selfTest: SelfTest;
}

const words: readonly string[] = ["a", "The cat sits outside, 3 of 4!", "zebra"];

async function inspect({ folder, ...session }: TextInspectionRequest): Promise<TextInspection> {
  const settings = readFolder(folder);
  const model = await loadTextModel({ folder, settings, ...session });
  try {
    const items: TextItem[] = words.map((text) => (settings.task === "rerank" ? { query: "cat", text } : text));
    const [first] = await runTogether(items.slice(0, 1), model);
    const result = await selfTest((batch) => runTogether(batch as TextItem[], model), items, session.maxBatchSize);
    const scoreCount = first?.scores?.length ?? settings.labels.length;
    if (settings.task === "classification" && scoreCount !== settings.labels.length)
      throw new Error(`the model gives ${scoreCount} scores for ${settings.labels.length} labels`);
    return {
      settings,
      vectorLength: first?.vector?.length ?? 0,
      selfTest: result,
    };
  } finally {
    await model.session.release();
  }
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
