import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { test } from "node:test";
import { complaintsAbout } from "../scripts/lib/boundaries.mjs";
import { filesBelow, root } from "../scripts/lib/files.mjs";
import { importsOf, readsEnvironment } from "../scripts/lib/imports.mjs";
import { entryPoints } from "../scripts/lib/public-exports.mjs";

const sources = ["sheaf", "sheaf-server"]
  .flatMap((name) => filesBelow(`packages/${name}/src`, ".ts"))
  .map((file) => ({ path: relative(root, file), text: readFileSync(file, "utf8") }));
const tools = ["bench", "scripts", "test"]
  .flatMap((folder) => filesBelow(folder, ".mjs"))
  .filter((file) => !file.includes("/node_modules/"))
  .map((file) => ({ path: relative(root, file), text: readFileSync(file, "utf8") }));
const entries = entryPoints("sheaf").map(({ specifier }) => specifier);

test("no module imports what its area may not (ARCHITECTURE.md: floor plan)", () => {
  assert.ok(tools.length > 150, `only ${tools.length} tools were found`);
  assert.deepEqual(complaintsAbout([...sources, ...tools], entries), []);
});

test("process.env is read in one file of the server, set in another, and handed on in one of the library", () => {
  const users = sources.filter(({ path, text }) => readsEnvironment(text, path));
  assert.deepEqual(
    users.map(({ path }) => path),
    [
      "packages/sheaf/src/node/command/child.ts",
      "packages/sheaf-server/src/settings/config.ts",
      "packages/sheaf-server/src/shared/without-telemetry.ts",
    ],
  );
});

test("only one file imports ONNX Runtime, and it turns telemetry off first", () => {
  const importers = sources.filter(({ text }) => importsOf(text).includes("onnxruntime-node"));
  assert.deepEqual(
    importers.map(({ path }) => path),
    ["packages/sheaf-server/src/runners/onnx/runtime.ts"],
  );
  for (const path of ["index.ts", "cli/main.ts", "runners/onnx/runtime.ts", "runners/workers/worker-module.ts"]) {
    const { text } = sources.find((source) => source.path === `packages/sheaf-server/src/${path}`);
    assert.match(importsOf(text)[0], /shared\/without-telemetry\.ts$/, path);
  }
});
