import { readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { CommandFailure, UsageError } from "../../shared/failure.ts";

export const withWriteConfig = (command: Command): Command =>
  command.option(
    "--write-config [path]",
    "write the recommended settings into a config file (default: sheaf.config.json)",
  );

/** The path that `--write-config` names. @throws {UsageError} where it is not JSON. */
export function configPath(given: string | true): string {
  const path = typeof given === "string" ? given : "sheaf.config.json";
  if (path.endsWith(".json")) return path;
  throw new UsageError(`--write-config writes JSON: name a .json file, got ${path}.`);
}

/** Writes settings into a config file and leaves the rest of it unchanged; one that is undefined is removed. */
export async function writeConfig(path: string, settings: object): Promise<void> {
  let earlier: unknown = {};
  try {
    earlier = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
      throw new CommandFailure(`${path} was not changed: ${(error as Error).message}`);
    }
  }
  if (typeof earlier !== "object" || earlier === null || Array.isArray(earlier)) {
    throw new CommandFailure(`${path} was not changed: it does not hold an object.`);
  }
  try {
    await replaceFile(path, `${JSON.stringify({ ...earlier, ...settings }, null, 2)}\n`);
  } catch (error) {
    throw new CommandFailure(`${path} cannot be written: ${(error as Error).message}`);
  }
}

/** Writes the whole text or nothing: if the disk is full, the old file stays, with its mode. */
async function replaceFile(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const { mode } = await stat(target).catch(() => ({ mode: 0o666 }));
  const partial = `${target}.partial`;
  try {
    await writeFile(partial, text, { mode });
    await rename(partial, target);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}
