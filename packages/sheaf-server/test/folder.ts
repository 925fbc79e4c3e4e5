import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder until the test ends, or with `{ after }` of node:test until its file does. */
export function temporaryFolder(context: { after(cleanUp: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
