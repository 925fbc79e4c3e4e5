import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { contentHash } from "../../dist/runners/content-hash.js";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "sheaf-hash-"))));
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

test("a worker module's hash covers what it imports, requires and names, and the versions of its packages", async () => {
  const model = write(
    "model.mjs",
    `import "./a.mjs"; import { x } from "pkg"; import "node:fs";
     const weights = new URL("./weights.bin", import.meta.url);
     export default () => import("./late.mjs");`,
  );
  write("a.mjs", `import { createRequire } from "node:module"; export const r = 1; import "./b.cjs";`);
  write("b.cjs", `module.exports = require("./c");`);
  write("c.js", "module.exports = 1;");
  write("late.mjs", "export default 1;");
  write("weights.bin", "1");
  write("node_modules/pkg/package.json", `{"name":"pkg","version":"1.0.0"}`);
  const seen = new Set([await contentHash(model)]);
  assert.match([...seen][0]!, /^[\da-f]{12}$/);
  const edits: [name: string, text: string][] = [
    ["model.mjs", `import "./a.mjs"; import { x } from "pkg"; const w = new URL("./weights.bin", import.meta.url); export default () => import("./late.mjs");`],
    ["a.mjs", `export const r = 2; import "./b.cjs";`],
    ["b.cjs", `module.exports = 2 + require("./c");`],
    ["c.js", "module.exports = 2;"],
    ["late.mjs", "export default 2;"],
    ["weights.bin", "2"],
    ["node_modules/pkg/package.json", `{"name":"pkg","version":"1.0.1"}`],
  ]; // prettier-ignore
  for (const [name, text] of edits) {
    write(name, text);
    const hash = await contentHash(model);
    assert.ok(!seen.has(hash), `an edit of ${name} changes it`);
    seen.add(hash);
  }
  const before = await contentHash(model);
  write("unused.mjs", "export {};");
  assert.equal(await contentHash(model), before, "a file that it does not use changes nothing");
  const elsewhere = mkdtempSync(join(tmpdir(), "sheaf-hash-"));
  try {
    cpSync(folder, elsewhere, { recursive: true });
    assert.equal(await contentHash(join(elsewhere, "model.mjs")), before, "nor does the folder that it lies in");
  } finally {
    rmSync(elsewhere, { recursive: true });
  }
});

test("of a model file and a folder it covers every byte; built-in models differ", async () => {
  const file = write("m/model.onnx", "graph");
  const first = await contentHash(file);
  write("m/model.onnx.data", "weights");
  const second = await contentHash(file);
  assert.notEqual(second, first);
  const whole = await contentHash(join(folder, "m"));
  write("m/onnx/more.json", "{}");
  assert.notEqual(await contentHash(join(folder, "m")), whole);
  assert.notEqual(await contentHash("mlp"), await contentHash("use-lite"));
});

test("of a Python file it covers what it imports from its own folder", async () => {
  const model = write("model.py", "import os, helper as h\nfrom package.part import thing\n");
  write("helper.py", "import deeper");
  write("deeper.py", "x = 1");
  write("package/__init__.py", "");
  write("package/other.py", "from . import part");
  write("other.py", "not imported");
  const first = await contentHash(model);
  for (const [name, text] of [
    ["helper.py", "import deeper  # changed"],
    ["deeper.py", "x = 2"],
    ["package/other.py", "from . import others"],
    ["model.py", "import os, helper\n"],
  ] as const) {
    const before = await contentHash(model);
    write(name, text);
    assert.notEqual(await contentHash(model), before, name);
  }
  write("model.py", "import os, helper as h\nfrom package.part import thing\n");
  write("helper.py", "import deeper");
  write("deeper.py", "x = 1");
  write("package/other.py", "from . import part");
  write("other.py", "changed");
  assert.equal(await contentHash(model), first);
});
