import type { Priority } from "sheaf";
import type { EmbeddingCall } from "sheaf/internal/openai";

/** A request whose inputs may share others' requests. */
export interface BatchableRequest {
  readonly model: string;
  readonly calls: readonly EmbeddingCall[];
  /** `input` was one text or one array of token ids, not a list. */
  readonly isSingle: boolean;
  /** As the body names it: above 0 is bulk. */
  readonly priority: Priority | undefined;
}

/** A model's name is kept for as long as its lane. */
const longestModel = 512;

/**
 * Reads a body as OpenAI's API has it: `model` and an `input` of texts, token ids or objects. Anything else in it is a
 * parameter, and separates, but for an integer as `priority`: that is for the queue here, and does not go on. Undefined where it is something else, which the upstream answers.
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

/** A text, a text as token ids, or an object such as `{ "image": … }`; an empty one the upstream shall refuse. */
function isInput(value: unknown): boolean {
  if (typeof value === "string") return value !== "";
  if (Array.isArray(value)) return value.length > 0 && value.every((token) => Number.isInteger(token));
  return typeof value === "object" && value !== null;
}
