import assert from "node:assert/strict";
import { test } from "node:test";
import Fastify from "fastify";
import { createServer, sheafPlugin, type ModelDefinition } from "../../dist/index.js";
import { processesOf } from "../../dist/cli/processes/count.js";
import { defaultSettings, type Settings } from "../../dist/settings/settings.js";

const GiB = 1024 ** 3;
const count = (own: Partial<Settings>, cores: number, memoryGiB = 64): number =>
  processesOf({ ...defaultSettings, httpProcesses: "auto", ...own }, cores, memoryGiB * GiB);

test("HTTP_PROCESSES=auto takes half of the cores that workers leave, and a quarter of the memory", () => {
  // Half of them are for workers on the CPU, however many there are.
  assert.deepEqual([1, 2, 4, 8, 16, 32, 64].map((cores) => count({}, cores)), [1, 1, 1, 2, 4, 8, 8]); // prettier-ignore
  assert.equal(count({ workers: 4 }, 16), 4);
  const gpu = (workers: number, cores: number): number => count({ inferenceDevice: "cuda", workers }, cores);
  assert.deepEqual([gpu(1, 2), gpu(1, 8), gpu(4, 8), gpu(8, 8), gpu(16, 8), gpu(8, 96)], [1, 3, 2, 1, 1, 8]);
  // Shares of a core, as containers have.
  assert.deepEqual([count({}, 0.5), count({}, 7.9), count({ inferenceDevice: "cuda" }, 5.5)], [1, 1, 2]);
  // 128 MiB a front.
  assert.deepEqual([0.25, 1, 2, 4].map((memory) => count({}, 64, memory)), [1, 2, 4, 8]); // prettier-ignore
});

test("a number of HTTP_PROCESSES is taken as it is, and auto has an answer on this machine", () => {
  assert.equal(count({ httpProcesses: 12 }, 1, 0.1), 12);
  const here = processesOf({ ...defaultSettings, httpProcesses: "auto" });
  assert.ok(Number.isInteger(here) && here >= 1 && here <= 8, String(here));
});

test("HTTP_PROCESSES is refused by name in every part of a fleet and for an app of one's own", async () => {
  for (const role of ["all", "gateway", "worker"] as const)
    for (const httpProcesses of ["auto", 2] as const)
      assert.throws(() => count({ natsUrl: "nats://127.0.0.1:1", role, httpProcesses }, 64), {
        message: "HTTP_PROCESSES cannot be combined with NATS_URL: start more gateways.",
      });
  assert.equal(count({ natsUrl: "nats://127.0.0.1:1", httpProcesses: 1 }, 64), 1);
  const own: ModelDefinition = {
    name: "own",
    input: { kind: "json" },
    output: { kind: "json" },
    run: (items) => items,
  };
  for (const httpProcesses of ["auto", 2] as const) {
    const options = { models: [own], settings: { httpProcesses } };
    const refusal = { message: /^HTTP_PROCESSES is only for sheaf serve/ };
    await assert.rejects(createServer(options), refusal);
    await assert.rejects(async () => Fastify().register(sheafPlugin, options), refusal);
  }
});
