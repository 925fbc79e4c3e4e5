import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bench } from "../../dist/cli/bench.js";
import { recommend } from "../../dist/cli/recommend.js";
import { tune } from "../../dist/cli/tune.js";
import { collected } from "./streams.js";

// perf_analyzer's flags are its own.
const guide = readFileSync(new URL("../../../../docs/guide/capacity.md", import.meta.url), "utf8").replace(
  /### NVIDIA's perf_analyzer[^]*?(?=\n## |$)/,
  "",
);

test("every flag that docs/guide/capacity.md names exists, and every command has its place there", async () => {
  const commands = { bench, recommend, tune };
  const flags = new Set<string>();
  for (const [name, run] of Object.entries(commands)) {
    const streams = collected();
    assert.equal(await run(["--help"], streams), 0);
    for (const [flag] of streams.out().matchAll(/--[a-z][a-z-]*/g)) flags.add(flag);
    assert.ok(guide.includes(`sheaf ${name}`), name);
  }
  const named = [...guide.matchAll(/(?<![\w-])--[a-z][a-z-]*/g)].map(([flag]) => flag);
  assert.deepEqual(
    named.filter((flag) => !flags.has(flag)),
    [],
  );
});
