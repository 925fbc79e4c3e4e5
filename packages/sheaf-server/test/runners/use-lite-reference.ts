import { readFileSync } from "node:fs";

/** What TensorFlow.js gives for each text: see fixtures/record-use-lite.mjs. */
export interface ReferenceRecord {
  readonly text: string;
  /** All token ids, before the cut at 128. */
  readonly ids: readonly number[];
  readonly vector: Float32Array;
}

const file = new URL("../../test/fixtures/use-lite-reference.json", import.meta.url);
const records = JSON.parse(readFileSync(file, "utf8")) as { text: string; ids: number[]; vector: string }[];

export const useLiteReference: readonly ReferenceRecord[] = records.map(({ text, ids, vector }) => ({
  text,
  ids,
  vector: new Float32Array(Uint8Array.from(Buffer.from(vector, "base64")).buffer),
}));
