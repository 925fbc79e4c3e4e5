import assert from "node:assert/strict";
import { test } from "node:test";

test("importing sheaf-server starts no server, worker or timer", async () => {
  const before = process.getActiveResourcesInfo().sort();
  await import("../dist/index.js");
  assert.deepEqual(process.getActiveResourcesInfo().sort(), before);
});
