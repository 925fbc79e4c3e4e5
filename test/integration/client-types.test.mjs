// The structural client types of the adapters take the real clients' own types, and infer what callers give and get.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const pathOf = (path) => fileURLToPath(new URL(path, import.meta.url));

test("pg, postgres.js, PGlite, LanceDB, Qdrant's client, OpenAI's, Anthropic's and the AI SDK compile where an adapter takes them", () => {
  const { stdout, status } = spawnSync(
    process.execPath,
    [pathOf("../../node_modules/typescript/bin/tsc"), "-p", pathOf("types")],
    { encoding: "utf8", timeout: 600_000 },
  );
  assert.equal(status, 0, stdout);
});
