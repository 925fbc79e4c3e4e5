import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { simulateRecorded } from "sheaf/internal/tuning";

import { temporaryFolder } from "../folder.js";
import { post } from "../asking.js";

const entry = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const folder = temporaryFolder({ after });
const env = { PATH: process.env["PATH"] ?? "" };
// Writing to /dev/full is writing to a disk without room.
const noFullDisk = existsSync("/dev/full") ? false : "needs /dev/full";

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

test("a server whose log disk is full starts, answers and drains", { skip: noFullDisk }, async (t) => {
  const port = await freePort();
  const full = openSync("/dev/full", "w");
  const server = spawn(process.execPath, [entry, "serve", "mlp"], {
    cwd: folder,
    env: { ...env, PORT: String(port), WARMUP_BATCHES: "1", LOG_LEVEL: "debug" },
    stdio: ["ignore", full, "ignore"],
  });
  t.after(() => server.kill("SIGKILL"));
  const ended = once(server, "exit");
  const isReady = async (): Promise<boolean> =>
    (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok ?? false;
  while (!(await isReady())) assert.equal(server.exitCode, null, "the server ended");
  assert.equal((await post(`http://127.0.0.1:${port}/infer`, new Array(768).fill(0.5))).status, 200);
  server.kill("SIGTERM");
  assert.deepEqual(await ended, [0, null]);
});

test("output to a full disk is a failure with one line that says so", { skip: noFullDisk }, () => {
  const run = spawnSync("sh", ["-c", `"${process.execPath}" "${entry}" config >/dev/full`], {
    cwd: folder,
    env,
    encoding: "utf8",
  });
  assert.match(run.stderr, /^sheaf: the output cannot be written: ENOSPC[^\n]*\n$/);
  assert.equal(run.status, 1);
});

test("sheaf config shows the model that would be served where none is named", () => {
  const shown = (...words: string[]): string =>
    spawnSync(process.execPath, [entry, "config", ...words], { cwd: folder, env, encoding: "utf8" }).stdout;
  const { models, modelsOrigin } = JSON.parse(shown("--json")) as Record<string, unknown>;
  assert.deepEqual([models, modelsOrigin], [[{ model: "use-lite", settings: {} }], "default"]);
  assert.match(shown(), /^models +use-lite +default$/m);
});

test("a reader that stops reading is not a failure: sheaf config | head -1", () => {
  const errors = join(folder, "errors");
  const command = `{ "${process.execPath}" "${entry}" config 2>"${errors}"; echo "exit $?" >>"${errors}"; } | head -1`;
  const { stdout } = spawnSync("sh", ["-c", command], { cwd: folder, env, encoding: "utf8" });
  assert.match(stdout, /^MAX_BATCH_SIZE /);
  assert.equal(readFileSync(errors, "utf8"), "exit 0\n");
});

test("data is whole where progress cannot be written", { skip: noFullDisk }, async () => {
  const lines: string[] = [];
  const arrivals = { pattern: "poisson", ratePerS: 200 } as const;
  const service = { cost: { fixedMs: 10, perItemMs: 1 }, concurrency: 1, arrivals, items: 3000 };
  await simulateRecorded(service, (line) => lines.push(line));
  const record = join(folder, "record.jsonl");
  writeFileSync(record, lines.join("\n"));
  const command = `"${process.execPath}" "${entry}" recommend "${record}" --slo p99=10s --json 2>/dev/full`;
  const run = spawnSync("sh", ["-c", command], { cwd: folder, env, encoding: "utf8" });
  assert.equal(run.status, 3);
  assert.equal((JSON.parse(run.stdout) as { calls: number }).calls, 3000);
});

test("a variable that is nearly a setting is a warning on stderr, and its value is not shown", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [entry, "config", "--json"], {
    cwd: folder,
    env: { ...env, MAX_BATCHSIZE: "secret" },
    encoding: "utf8",
  });
  const warning = "sheaf config: warning: the variable MAX_BATCHSIZE is not a setting; did you mean MAX_BATCH_SIZE?\n";
  assert.deepEqual([status, stderr], [0, warning]);
  assert.ok(!stdout.includes("secret"));
});
