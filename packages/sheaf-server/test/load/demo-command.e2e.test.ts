import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { demo } from "../../dist/cli/demo.js";
import type { DemoResult } from "../../dist/load/demo/demo.js";
import { collected } from "./streams.js";

test("the demo's story holds: one poison item fails alone, a killed worker loses no call, batching is advised", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-demo-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const html = join(folder, "demo.html");
  const streams = collected();
  const code = await demo(["--duration", "5s", "--json", "--report", html], streams);
  assert.equal(code, 0, streams.err());
  const { ramp, poison, killed, advice } = JSON.parse(streams.out()) as DemoResult;
  assert.equal(poison.failed, 1);
  assert.equal(killed.load.successRate, 1, JSON.stringify(killed.load.statuses));
  assert.equal(killed.restarts, 1);
  assert.equal(advice.verdict, "batch");
  // The same calls at the same times; which way answers more of them is measured, and a crowded machine may blur it.
  assert.equal(ramp.unbatched.requests, ramp.batched.requests);
  assert.ok(readFileSync(html, "utf8").includes("Latency over time: ramp"));
});

test("a demo too short to show anything is refused with exit 2", async () => {
  const streams = collected();
  assert.equal(await demo(["--duration", "1s"], streams), 2);
  assert.match(streams.err(), /--duration must be at least 3s/);
});
