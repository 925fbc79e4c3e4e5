import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { test } from "node:test";
import { complaintAbout, complaintsAbout } from "../scripts/lib/boundaries.mjs";
import { filesBelow, root } from "../scripts/lib/files.mjs";
import { importsOf, readsEnvironment } from "../scripts/lib/imports.mjs";
import { entryPoints, internalEntry } from "../scripts/lib/public-exports.mjs";

const sources = ["sheaf", "sheaf-server"]
  .flatMap((name) => filesBelow(`packages/${name}/src`, ".ts"))
  .map((file) => ({ path: relative(root, file), text: readFileSync(file, "utf8") }));
const tools = ["bench", "integration", "prove", "scripts", "site", "test"]
  .flatMap((folder) => filesBelow(folder, ".mjs"))
  .filter((file) => !file.includes("/node_modules/"))
  .concat(filesBelow("playground/src", ".js"))
  .map((file) => ({ path: relative(root, file), text: readFileSync(file, "utf8") }));
const entries = [...entryPoints("sheaf").map(({ specifier }) => specifier), internalEntry];

test("no module imports what its area may not (ARCHITECTURE.md: floor plan)", () => {
  assert.ok(tools.length > 150, `only ${tools.length} tools were found`);
  assert.deepEqual(complaintsAbout([...sources, ...tools], entries), []);
});

test("one wrong import in a source of the package is complained about", () => {
  const path = "packages/sheaf/src/policies/greedy.ts";
  const { text } = sources.find((source) => source.path === path);
  const wrong = { path, text: `import { greedyWindow } from "./auto/index.ts";\n${text}` };
  const complaint = `${path} imports ./auto/index.ts: room . is not above room auto in packages/sheaf/src/policies`;
  assert.deepEqual(complaintsAbout([wrong], entries), [complaint]);
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

test("importsOf sees every way to name a module, and no comment", () => {
  const source = `
    import { a, type B } from "./a.ts";
    import type { C } from './c.ts';
    import "./side.ts";
    export * from "./all.ts"; export { d } from "./d.ts";
    import {
      several,
    } from "node:fs";
    // import { x } from "./commented.ts";
    /* export { y } from "./commented-too.ts"; */
    const late = await import("./late.ts");
    const worker = new URL(\`./worker-main\${extension}\`, import.meta.url);
    const text = "http://example.org/ // not a comment"; import z from "./after-text.ts";
  `;
  assert.deepEqual(importsOf(source).sort(), [
    "./a.ts", "./after-text.ts", "./all.ts", "./c.ts", "./d.ts", "./late.ts", "./side.ts", "./worker-main${extension}", "node:fs",
  ]); // prettier-ignore
});

test("the rules refuse what the architecture forbids and allow what it allows", () => {
  const bad = [
    ["packages/sheaf/src/policies/greedy.ts", "../core/runtime/clock.ts"],
    ["packages/sheaf/src/core/create-batcher.ts", "node:timers"],
    ["packages/sheaf/src/core/create-batcher.ts", "../index.ts"],
    ["packages/sheaf/src/core/create-batcher.ts", "lodash"],
    ["packages/sheaf/src/tuning/simulate.ts", "../node/pool.ts"],
    ["packages/sheaf/src/adapters/openai.ts", "./postgres.ts"],
    ["packages/sheaf/src/index.ts", "./tuning/index.ts"],
    ["packages/sheaf-server/src/server/server.ts", "../load/generator.ts"],
    ["packages/sheaf-server/src/server/server.ts", "../cli/main.ts"],
    ["packages/sheaf-server/src/server/server.ts", "sheaf/core/queue"],
    ["packages/sheaf-server/src/server/server.ts", "../../../sheaf/src/index.ts"],
    ["packages/sheaf-server/src/runners/builtin.ts", "../server/plugin.ts"],
    ["bench/fleet.mjs", "../prove/lib/fleet-faults.mjs"],
  ];
  const good = [
    ["packages/sheaf/src/core/create-batcher.ts", "../policies/auto/index.ts"],
    ["packages/sheaf/src/node/pool/pool.ts", "node:worker_threads"],
    ["packages/sheaf/src/adapters/openai.ts", "./shared/tokens.ts"],
    ["packages/sheaf/src/adapters/nats/worker/worker.ts", "./wire.ts"],
    ["packages/sheaf-server/src/cli/serve.ts", "../server/server.ts"],
    ["packages/sheaf-server/src/server/server.ts", "sheaf/node"],
    ["packages/sheaf-server/src/server/server.ts", "fastify"],
    ["prove/fleet.mjs", "../bench/lib/machine.mjs"],
  ];
  for (const [path, specifier] of bad) assert.match(complaintAbout(path, specifier, entries) ?? "", /imports/, path);
  for (const [path, specifier] of good) assert.equal(complaintAbout(path, specifier, entries), undefined);
});
