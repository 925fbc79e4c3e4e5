import { fileURLToPath } from "node:url";
import { post as send, type Reply } from "../asking.js";

export { skipWithoutPython } from "../../../../test/support/python.mjs";

/** A Python model of fixtures/. */
export const pythonModel = (name: string): string =>
  fileURLToPath(new URL(`../../test/e2e/fixtures/${name}.py`, import.meta.url));

/** Settings of a server that is ready soon. */
export const few: Readonly<Record<string, string>> = { WARMUP_BATCHES: "2" };

/** Sends a value as JSON, a text too. */
export const post = (url: string, value: unknown, headers?: Record<string, string>): Promise<Reply> =>
  send(url, JSON.stringify(value), headers);
