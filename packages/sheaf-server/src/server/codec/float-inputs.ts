import { parseFloat32Json } from "./float32-json.ts";

export type FloatInputs = { readonly item: Float32Array } | { readonly items: readonly Float32Array[] };

// An envelope is recognised in its plain form; the bytes before the first number are few.
const headBytes = 64;
const space = "[ \\t\\r\\n]*";
const oneHead = new RegExp(`^${space}(?:\\{${space}"input"${space}:${space})?(?=\\[)`);
const severalHead = new RegExp(`^${space}\\{${space}"inputs"${space}:${space}\\[${space}(?=\\[)`);

/**
 * Reads `[…]`, `{"input": […]}` or `{"inputs": [[…], …]}` straight into arrays of exactly `length` floats, in one pass. Undefined for
 * everything else, including a wrong body: JSON.parse then finds the fault and the number of elements.
 */
export function floatInputsOf(body: unknown, length: number, maxItems: number): FloatInputs | undefined {
  if (!Buffer.isBuffer(body)) return undefined;
  const head = body.toString("latin1", 0, headBytes);
  const several = severalHead.exec(head);
  if (several !== null) return severalOf(body, several[0].length, length, maxItems);
  const one = oneHead.exec(head);
  if (one === null) return undefined;
  const item = new Float32Array(length);
  const parsed = parseFloat32Json(body, one[0].length, item);
  const isEnvelope = one[0].includes("{");
  if (!parsed.ok || parsed.count !== length || !endsWith(body, parsed.end, isEnvelope ? "}" : "")) return undefined;
  return { item };
}

function severalOf(body: Buffer, start: number, length: number, maxItems: number): FloatInputs | undefined {
  const items: Float32Array[] = [];
  for (let at = start; items.length < maxItems;) {
    const item = new Float32Array(length);
    const parsed = parseFloat32Json(body, at, item);
    if (!parsed.ok || parsed.count !== length) return undefined;
    items.push(item);
    at = skipSpace(body, parsed.end);
    if (body[at] !== comma) return endsWith(body, at, "]}") ? { items } : undefined;
    at = skipSpace(body, at + 1);
  }
  return undefined;
}

const comma = 0x2c;

function skipSpace(bytes: Buffer, offset: number): number {
  let at = offset;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++;
  return at;
}

/** Whether only these characters follow from `offset` on, with any whitespace around them. */
function endsWith(bytes: Buffer, offset: number, characters: string): boolean {
  let at = skipSpace(bytes, offset);
  for (const character of characters) {
    if (bytes[at] !== character.charCodeAt(0)) return false;
    at = skipSpace(bytes, at + 1);
  }
  return at === bytes.length;
}
