import { readFile } from "node:fs/promises";
import { UsageError } from "../../shared/failure.ts";

/** The text of a file that a flag names. @throws {UsageError} */
export async function textOf(flag: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new UsageError(`${flag} cannot be read: ${(error as Error).message}`);
  }
}
