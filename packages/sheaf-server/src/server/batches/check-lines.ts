import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { linesOf } from "./lines.ts";
import type { LineError } from "./records.ts";

export interface CheckOrder {
  readonly path: string;
  readonly endpoint: string;
  /** The model in the path of the endpoint. */
  readonly pathModel: string | undefined;
  readonly models: readonly string[];
  readonly maxLineBytes: number;
}

export interface Checked {
  readonly total: number;
  /** Undefined if the lines name none. */
  readonly model: string | undefined;
  /** The first errors; the batch runs if there are none. */
  readonly errors: readonly LineError[];
}

export const mostLines = 250_000;
const mostErrors = 100;
/** Longer ids are compared by their hash. */
const shortId = 32;
const longestId = 512;

/** Reads a file of requests before any of them runs. */
export async function checkLines(order: CheckOrder): Promise<Checked> {
  const file = await open(order.path);
  try {
    const ids = new Set<string>();
    const errors: LineError[] = [];
    let total = 0;
    let model: string | undefined;
    for await (const { number, bytes } of linesOf(file, order.maxLineBytes)) {
      if (++total > mostLines) {
        errors.push(fault(null, "too_many_requests", `The file has more than ${mostLines} lines.`));
        break;
      }
      const read = readLine(bytes, ids, order);
      if (typeof read === "string")
        errors.push(fault(number, read.slice(0, read.indexOf(":")), read.slice(read.indexOf(":") + 2)));
      else if (total === 1) model = read.model;
      else if (read.model !== model)
        errors.push(fault(number, "mismatched_model", "All lines of a file name the same model."));
      if (errors.length === mostErrors) break;
    }
    if (total === 0) errors.push(fault(null, "empty_file", "The file has no lines."));
    return { total, model, errors };
  } finally {
    await file.close();
  }
}

const fault = (line: number | null, code: string, message: string): LineError => ({ code, message, param: null, line });

/** The line's model, or what is wrong: a code, a colon, a sentence. */
function readLine(
  bytes: Buffer,
  ids: Set<string>,
  { endpoint, pathModel, models, maxLineBytes }: CheckOrder,
): string | { readonly model: string | undefined } {
  if (bytes.length > maxLineBytes)
    return `line_too_long: The line is longer than ${maxLineBytes} bytes (MAX_BODY_BYTES).`;
  let line: Record<string, unknown>;
  try {
    if (!isUtf8(bytes)) return "invalid_json_line: The line is not UTF-8.";
    line = JSON.parse(bytes.toString("utf8")) as Record<string, unknown>;
  } catch {
    return "invalid_json_line: The line is not JSON.";
  }
  if (!isObject(line)) return "invalid_json_line: The line is not a JSON object.";
  const { custom_id: id, method = "POST", url, body } = line;
  if (typeof id !== "string" || id === "" || id.length > longestId)
    return `missing_custom_id: custom_id must be a text of 1 to ${longestId} characters.`;
  const key = id.length <= shortId ? id : createHash("sha256").update(id).digest("base64");
  if (ids.has(key)) return `duplicate_custom_id: custom_id ${JSON.stringify(id)} is that of an earlier line.`;
  ids.add(key);
  if (method !== "POST") return "invalid_method: method must be POST.";
  if (url !== endpoint) return `invalid_url: url must be ${endpoint}, the batch's endpoint.`;
  if (!isObject(body)) return "invalid_request: body must be a JSON object.";
  const model = typeof body["model"] === "string" ? body["model"] : pathModel;
  if (model !== undefined && !models.includes(model))
    return `model_not_found: There is no model ${JSON.stringify(model.slice(0, 100))}; served are: ${models.join(", ")}.`;
  return { model };
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
