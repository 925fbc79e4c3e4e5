import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";
import { measurePasses, PassCost, runInPasses } from "sheaf/models";
import type { RunContext } from "sheaf/node";
import { Tensor } from "../onnx/runtime.ts";
import type { FolderSettings } from "./folder-settings.ts";
import { firstTokens, meanPool, normalize, sigmoid, softmax } from "./pooling.ts";
import { sizeFor } from "../onnx/fixed-sizes.ts";
import { doubling } from "../../shared/doubling.ts";
import { openSession, type OnnxSession, type SessionSettings } from "../onnx/session.ts";

export interface TextData extends SessionSettings {
  readonly folder: string;
  readonly settings: FolderSettings;
}

export type TextItem = string | { readonly query: string; readonly text: string };

/** The result of one text: its vector, scores by label, or score, as the folder's task has it. */
export interface TextResult {
  readonly vector?: Float32Array;
  readonly scores?: Float32Array;
  /** Classification: before the activation. */
  readonly logits?: Float32Array;
  readonly score?: number;
  /** The input of the activation that gave `score`. */
  readonly logit?: number;
  readonly tokens: number;
  readonly truncated: boolean;
}

export interface LoadedText {
  readonly session: OnnxSession;
  readonly tokenizer: Tokenizer;
  readonly settings: FolderSettings;
  /** The lengths in tokens that texts are filled up to, on WebGPU; none elsewhere. */
  readonly fixedLengths: readonly number[];
  /** Of passes through the model, by texts and tokens; learned from each. */
  readonly cost: Pick<PassCost, "of" | "learn">;
  /** The most texts of a batch. */
  readonly maxBatchSize: number;
}

interface EncodedText {
  readonly ids: readonly number[];
  readonly types: readonly number[];
  readonly truncated: boolean;
}

/** The most padded tokens of one pass: a bound on its memory. */
const maxPaddedTokens = 16_384;

const shortestFixedLength = 16;

const knownInputs: readonly string[] = ["input_ids", "attention_mask", "token_type_ids"];

/** @throws {Error} the tokenizer or the model is broken, or asks for an input that no tokenizer gives. */
export async function loadTextModel({ folder, settings, ...session }: TextData): Promise<LoadedText> {
  const tokenizer = readTokenizer(folder);
  const opened = await openSession(settings.modelPath, session);
  const unknown = opened.inputNames.find((name) => !knownInputs.includes(name));
  if (unknown !== undefined)
    throw new Error(`${settings.modelPath} asks for ${unknown}; known are ${knownInputs.join(", ")}.`);
  const fixedLengths =
    opened.fixedSizes.length === 0
      ? []
      : doubling(Math.min(shortestFixedLength, settings.maxTokens), settings.maxTokens);
  const { maxBatchSize = 32 } = session;
  return { session: opened, tokenizer, settings, fixedLengths, cost: costOn(opened), maxBatchSize };
}

/** The cost of passes by the sizes that the device runs. */
function costOn({ fixedSizes }: OnnxSession): LoadedText["cost"] {
  const cost = new PassCost();
  if (fixedSizes.length === 0) return cost;
  return {
    of: (size, length) => cost.of(sizeFor(fixedSizes, size), length),
    learn: (size, length, ms) => cost.learn(sizeFor(fixedSizes, size), length, ms),
  };
}

/** Runs every shape that can occur, where the device has to know them before the first text, and measures passes. */
export async function warmUpTexts(model: LoadedText): Promise<void> {
  const { session, settings, fixedLengths, cost, maxBatchSize } = model;
  const pass = (size: number, length: number): Promise<TextResult[]> => {
    const ids = new Array<number>(length).fill(settings.padId);
    const text: EncodedText = { ids, types: ids.map(() => 0), truncated: false };
    return runOnce(
      Array.from({ length: size }, () => text),
      model,
    );
  };
  for (const length of fixedLengths) {
    const most = sizeFor(session.fixedSizes, Math.max(1, Math.floor(maxPaddedTokens / length)));
    for (const size of session.fixedSizes) if (size <= most) await pass(size, length);
  }
  await measurePasses(cost, pass, { maxLength: settings.maxTokens, maxSize: maxBatchSize });
}

function readTokenizer(folder: string): Tokenizer {
  const read = (name: string): object => JSON.parse(readFileSync(join(folder, name), "utf8")) as object;
  try {
    return new Tokenizer(
      read("tokenizer.json"),
      readOptional(() => read("tokenizer_config.json")),
    );
  } catch (error) {
    throw new Error(`${folder}/tokenizer.json: ${(error as Error).message}`, { cause: error });
  }
}

function readOptional(read: () => object): object {
  try {
    return read();
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return {};
    throw error;
  }
}

/** Texts of like length run together, and are answered when their pass ends; see `runInPasses`. */
export async function runTexts(
  items: readonly TextItem[],
  model: LoadedText,
  { answer, signal }: Partial<Pick<RunContext, "answer" | "signal">> = {},
): Promise<(TextResult | Error)[]> {
  const texts = items.map((item) => encode(item, model));
  return runInPasses(texts, {
    lengths: texts.map(({ ids }) => lengthOf(ids, model)),
    run: (pass) => runOnce(pass, model),
    cost: model.cost,
    answer,
    signal,
    maxPaddedLength: maxPaddedTokens,
  });
}

/** All texts in one run, with any amount of padding: the self-test compares it. */
export async function runTogether(items: readonly TextItem[], model: LoadedText): Promise<TextResult[]> {
  return runOnce(
    items.map((item) => encode(item, model)),
    model,
  );
}

function encode(item: TextItem, { tokenizer, settings: { maxTokens, padId } }: LoadedText): EncodedText {
  const [text, pair] = typeof item === "string" ? [item, null] : [item.query, item.text];
  const encoding = tokenizer.encode(text, { text_pair: pair, return_token_type_ids: true });
  const { ids, token_type_ids: types } = encoding;
  if (ids.length === 0) return { ids: [padId], types: [0], truncated: false };
  if (ids.length <= maxTokens) return { ids, types, truncated: false };
  // Cut before the special tokens of the end, which the model was trained to see.
  const specials = new Set(tokenizer.encode("").ids);
  let tail = 0;
  while (tail < ids.length && specials.has(ids[ids.length - 1 - tail])) tail++;
  tail = Math.min(tail, maxTokens - 1);
  const cut = (values: readonly number[]): number[] => [
    ...values.slice(0, maxTokens - tail),
    ...values.slice(values.length - tail),
  ];
  return { ids: cut(ids), types: cut(types), truncated: true };
}

/** The size of a text in a run of its own. */
const lengthOf = ({ length }: readonly number[], { fixedLengths }: LoadedText): number =>
  fixedLengths.length === 0 ? length : sizeFor(fixedLengths, length);

async function runOnce(texts: readonly EncodedText[], model: LoadedText): Promise<TextResult[]> {
  const { session, settings } = model;
  const longest = texts.reduce((most, { ids }) => Math.max(most, lengthOf(ids, model)), 0);
  const column = (pad: number, row: (text: EncodedText) => readonly number[]): Tensor => {
    const values = new BigInt64Array(texts.length * longest).fill(BigInt(pad));
    texts.forEach((text, i) => row(text).forEach((value, j) => (values[i * longest + j] = BigInt(value))));
    return new Tensor("int64", values, [texts.length, longest]);
  };
  const columns: Readonly<Record<string, () => Tensor>> = {
    input_ids: () => column(settings.padId, ({ ids }) => ids),
    attention_mask: () => column(0, ({ ids }) => ids.map(() => 1)),
    token_type_ids: () => column(0, ({ types }) => types),
  };
  const feeds = Object.fromEntries(session.inputNames.map((name) => [name, columns[name]!()]));
  const [name = ""] = ["sentence_embedding", "last_hidden_state", "logits", ...session.outputNames].filter(
    (candidate) => session.outputNames.includes(candidate),
  );
  const output = (await session.run(feeds, [name]))[name]!;
  const values = outputsOf(
    output,
    texts.map(({ ids }) => ids.length),
    settings,
  );
  return texts.map(({ ids, truncated }, i) => ({ ...values[i]!, tokens: ids.length, truncated }));
}

function outputsOf(
  { data, dims }: Tensor,
  lengths: readonly number[],
  settings: FolderSettings,
): Partial<TextResult>[] {
  const values = data as Float32Array;
  const width = dims.at(-1) ?? 1;
  if (settings.task === "embedding") {
    const vectors =
      dims.length === 2
        ? lengths.map((_, row) => values.slice(row * width, (row + 1) * width))
        : settings.pooling === "cls"
          ? firstTokens(values, dims[1]!, width, lengths.length)
          : meanPool(values, dims[1]!, width, lengths);
    return vectors.map((vector) => ({ vector: settings.isNormalized ? normalize(vector) : vector }));
  }
  const logits = lengths.map((_, row) => values.slice(row * width, (row + 1) * width));
  const activate = { softmax, identity: (x: Float32Array) => x, sigmoid: (x: Float32Array) => x.map(sigmoid) };
  const scores = logits.map(activate[settings.activation]);
  return scores.map((row, i) =>
    settings.task === "rerank" ? { score: row[0]!, logit: logits[i]![0]! } : { scores: row, logits: logits[i]! },
  );
}
