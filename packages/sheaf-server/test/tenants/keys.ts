import { createHash } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../folder.js";
import type { TestContext } from "node:test";

export const sha256 = (key: string): string => createHash("sha256").update(key).digest("hex");
export const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

/** An entry whose key is its name after "sk-". */
export const entry = (name: string, terms: object = {}): object => ({ name, sha256: sha256(`sk-${name}`), ...terms });

export interface KeysFile {
  readonly path: string;
  /** Replaces it in one step. */
  write(content: unknown): void;
}

/** A file of keys until the test ends. */
export function keysFile(t: TestContext, keys: readonly unknown[]): KeysFile {
  const folder = temporaryFolder(t);
  const path = join(folder, "keys.json");
  const write = (content: unknown): void => {
    writeFileSync(`${path}.new`, typeof content === "string" ? content : JSON.stringify(content));
    renameSync(`${path}.new`, path);
  };
  write({ keys });
  return { path, write };
}

/** Items of each tenant with an outcome, as /metrics has them. */
export const itemsBy = (metrics: string, outcome: string): Record<string, number> =>
  Object.fromEntries(
    [...metrics.matchAll(/^sheaf_tenant_items_total\{tenant="([^"]+)",outcome="(\w+)"\} (\d+)$/gm)]
      .filter(([, , found]) => found === outcome)
      .map(([, tenant, , items]) => [tenant, Number(items)]),
  );
