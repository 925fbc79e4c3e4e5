import type { Priority } from "sheaf";
import type { EmbeddingCall } from "sheaf/internal/openai";

/** A request whose inputs may share a request with others. */
export interface BatchableRequest {
  readonly model: string;
  readonly calls: readonly EmbeddingCall[];
  /** `input` was one text or one array of token ids, not a list. */
  readonly isSingle: boolean;
  /** From the body's `priority`: above 0 is bulk. */
  readonly priority: Priority | undefined;
}

/** Bounds a model's name, which is kept as long as its batcher. */
const longestModel = 512;

/**
 * Reads a body of OpenAI's API: `model` and an `input` of texts, token ids or objects. Every other field is a parameter and separates
 * requests, except an integer `priority`, which is for this proxy's queue and is not forwarded. Undefined for any other body, which
 * the upstream answers.
 */
export function batchableRequest(body: unknown): BatchableRequest | undefined {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return undefined;
  const { input, priority, ...others } = body as Record<string, unknown>;
  const isOurs = priority === undefined || priority === null || Number.isInteger(priority);
  const parameters = isOurs ? others : { ...others, priority };
  const { model } = parameters;
  if (typeof model !== "string" || model.length > longestModel || parameters["stream"] === true) return undefined;
  const isSingle = isInput(input);
  const inputs = isSingle ? [input] : input;
  if (!Array.isArray(inputs) || inputs.length === 0 || !inputs.every(isInput)) return undefined;
  return {
    model,
    calls: inputs.map((one: unknown) => ({ input: one, parameters })),
    isSingle,
    priority: isOurs && Number(priority) > 0 ? "bulk" : undefined,
  };
}

/** Whether it is a text, token ids, or an object such as `{ "image": … }`. Empty ones are left for the upstream to refuse. */
function isInput(value: unknown): boolean {
  if (typeof value === "string") return value !== "";
  if (Array.isArray(value)) return value.length > 0 && value.every((token) => Number.isInteger(token));
  return typeof value === "object" && value !== null;
}
