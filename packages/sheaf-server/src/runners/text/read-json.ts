import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** The JSON of a file; undefined where there is none. @throws {Error} it is no JSON, or no regular file. */
export function readJson(folder: string, name: string): unknown {
  const path = join(folder, name);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  // Reading a pipe would never end.
  if (!found.isFile()) throw new Error(`${path} is not a regular file.`);
  return parsedJson(readFileSync(path, "utf8"), path);
}

/** @throws {Error} without the file's bytes, which JSON.parse quotes: they may be those of a link's target. */
export function parsedJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const [where = ""] = / at position \d+/u.exec((error as Error).message) ?? [];
    throw new Error(`${path} is not JSON: it has a syntax error${where}.`); // eslint-disable-line preserve-caught-error
  }
}
