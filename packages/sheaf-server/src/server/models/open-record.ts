import type { FastifyInstance } from "fastify";
import { RecordFile } from "../../observe/record-file.ts";
import { ConfigError } from "../../settings/config.ts";
import type { Settings } from "../../settings/settings.ts";

/** RECORD_FILE, until the app has closed; undefined without it. @throws {ConfigError} where it cannot be written. */
export async function openRecord(app: FastifyInstance, { recordFile }: Settings): Promise<RecordFile | undefined> {
  if (recordFile === undefined) return undefined;
  let record: RecordFile;
  try {
    record = await RecordFile.open(recordFile, app.log);
  } catch (error) {
    throw new ConfigError(`RECORD_FILE cannot be written: ${(error as Error).message}`);
  }
  app.addHook("onClose", () => record.close());
  return record;
}
