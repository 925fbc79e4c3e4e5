import type { TestContext } from "node:test";
import OpenAI, { toFile } from "openai";
import type { ModelDefinition } from "../../../dist/index.js";
import type { Settings } from "../../../dist/settings/settings.js";
import { temporaryFolder } from "../../folder.js";
import { measuringTexts, serving, type Serving } from "../serving.js";

export type Batch = OpenAI.Batches.Batch;

export interface Batching extends Serving {
  readonly folder: string;
  /** Another client of the server, with a key and headers of its own. */
  as(apiKey: string, headers?: Record<string, string>): OpenAI;
  readonly openai: OpenAI;
}

/** A server with a folder for batches, and OpenAI's client of it. */
export async function batching(
  t: TestContext,
  settings: Partial<Settings> = {},
  models: readonly ModelDefinition[] = [measuringTexts()],
): Promise<Batching> {
  const folder = settings.batchesDir ?? temporaryFolder(t);
  const server = await serving(t, models, { batchesDir: folder, ...settings });
  const as = (apiKey: string, defaultHeaders: Record<string, string> = {}): OpenAI =>
    new OpenAI({ apiKey, baseURL: `${server.url}/v1`, maxRetries: 0, defaultHeaders });
  return Object.assign(server, { folder, as, openai: as("none") });
}

/** A line of a file of requests. */
export const line = (id: string, input: unknown, more: object = {}): object => ({
  custom_id: id,
  method: "POST",
  url: "/v1/embeddings",
  body: { model: "measure", input },
  ...more,
});

export const upload = async (openai: OpenAI, lines: readonly (object | string)[]): Promise<OpenAI.FileObject> =>
  openai.files.create({ file: await toFile(Buffer.from(textOf(lines)), "in.jsonl"), purpose: "batch" });

export const textOf = (lines: readonly (object | string)[]): string =>
  lines.map((one) => `${typeof one === "string" ? one : JSON.stringify(one)}\n`).join("");

export async function start(openai: OpenAI, lines: readonly (object | string)[], more: object = {}): Promise<Batch> {
  const { id } = await upload(openai, lines);
  return openai.batches.create({
    input_file_id: id,
    endpoint: "/v1/embeddings",
    completion_window: "24h",
    ...more,
  });
}

const isOver = ({ status }: Batch): boolean => ["completed", "failed", "expired", "cancelled"].includes(status);

/** Asks until the batch is what `is` waits for: by default, until it has ended. */
export async function until(
  openai: OpenAI,
  { id }: { id: string },
  is: (batch: Batch) => boolean = isOver,
): Promise<Batch> {
  for (;;) {
    const batch = await openai.batches.retrieve(id);
    if (is(batch)) return batch;
    if (isOver(batch)) throw new Error(`the batch has ended: ${JSON.stringify(batch)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The lines of a result file. */
export async function linesOf(openai: OpenAI, id: string | null | undefined): Promise<any[]> {
  if (!id) return [];
  const text = await (await openai.files.content(id)).text();
  return text
    .trimEnd()
    .split("\n")
    .map((one) => JSON.parse(one));
}
