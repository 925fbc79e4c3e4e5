import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export { skipWithoutPython } from "../../../../test/support/python.mjs";

/** A Python model of fixtures/. */
export const pythonModel = (name: string): string =>
  fileURLToPath(new URL(`../../test/e2e/fixtures/${name}.py`, import.meta.url));

/** Settings of a server that is ready soon. */
export const few: Readonly<Record<string, string>> = { WARMUP_BATCHES: "2" };

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly json: any;
}

export async function get(url: string, headers: Record<string, string> = {}): Promise<Reply> {
  const response = await fetch(url, { headers });
  return { status: response.status, headers: response.headers, json: await response.json() };
}

export async function post(url: string, body: unknown): Promise<Reply> {
  const response = await fetch(url, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  });
  return { status: response.status, headers: response.headers, json: await response.json() };
}

/** Waits until it holds; what it waits for must come. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let i = 0; i < 6000; i++) {
    if (await holds()) return;
    await sleep(50);
  }
  assert.fail(`never: ${what}`);
}
