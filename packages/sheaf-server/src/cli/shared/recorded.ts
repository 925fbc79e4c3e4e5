import { createReadStream } from "node:fs";
import { access, constants } from "node:fs/promises";
import { createInterface } from "node:readline";
import { readRecords, type Recording } from "sheaf/internal/tuning";
import { CommandFailure, UsageError, usage } from "../../shared/failure.ts";

/** @throws {UsageError} for files that are no record, or a model that is not in it. */
export async function recordingOf(files: readonly string[], model: string | undefined): Promise<Recording> {
  for (const file of files)
    await access(file, constants.R_OK).catch((error: Error) => {
      throw new UsageError(`${file} cannot be read: ${error.message}`);
    });
  const models = await readRecords(files.map(linesOf), files).catch((error: unknown) =>
    usage(() => {
      throw error;
    }),
  );
  const names = [...models].filter(([, { calls }]) => calls.count > 0).map(([name]) => name);
  if (names.length === 0) throw new CommandFailure(`${files.join(", ")} has no calls.`);
  const name = model ?? names[0]!;
  if (model === undefined && names.length > 1)
    throw new UsageError(`the record has the models ${names.join(", ")}: name one with --model.`);
  if (!names.includes(name)) throw new UsageError(`the record has no calls of ${name}; it has ${names.join(", ")}.`);
  return models.get(name)!;
}

/** Opened when its turn comes: what a reader of lines sees before anybody asks for them is lost. */
async function* linesOf(file: string): AsyncGenerator<string> {
  yield* createInterface({ input: createReadStream(file), crlfDelay: Infinity });
}
