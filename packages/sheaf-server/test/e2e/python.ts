import { fileURLToPath } from "node:url";

export { skipWithoutPython } from "../../../../test/support/python.mjs";

/** A Python model of fixtures/. */
export const pythonModel = (name: string): string =>
  fileURLToPath(new URL(`../../test/e2e/fixtures/${name}.py`, import.meta.url));
