import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test, type TestContext } from "node:test";
import { nats, skip } from "./nats.js";
import { get, post, type Reply } from "../asking.js";
import { folder, write } from "../runners/made-models.js";
import { ready, sheaf, type SheafProcess } from "./sheaf-process.js";

after(() => rmSync(folder, { recursive: true, force: true }));

interface Fleet {
  readonly gateway: SheafProcess;
  /** The worker's metrics. */
  metrics(): Promise<string>;
  infer(tenant: string, input: string): Promise<Reply>;
}

/** A gateway that knows tenants, and a worker that does not. */
async function fleet(t: TestContext, name: string, code: string, env: Record<string, string>): Promise<Fleet> {
  const module = write(name, code);
  const start = (role: string): SheafProcess => {
    const shared = { NATS_URL: nats.url, TENANT_BY: "header", WARMUP_BATCHES: "0", ...env };
    return sheaf(t, ["serve", module, "--role", role, "--port", "0"], shared);
  };
  const gateway = start("gateway");
  const [url, workerUrl] = await Promise.all([ready(gateway), ready(start("worker"))]);
  return {
    gateway,
    metrics: async () => (await get(`${workerUrl}/metrics`)).text,
    infer: (tenant, input) => post(`${url}/infer`, { input }, { "x-tenant": tenant }),
  };
}

test("who shares a failed run in a fleet reads nothing of the others' inputs; its log does", { skip }, async (t) => {
  const code = `export const onBatchError = "fail";
    export default { run(items) { if (items.length > 1) throw new TypeError("cannot parse " + items.join()); return items; } };`;
  // A batch goes when it is full.
  const full = { SCHEDULER_STRATEGY: "fifo", MAX_WAIT_MS: "60000", MAX_BATCH_SIZE: "2" };
  const { gateway, infer } = await fleet(t, "parser.mjs", code, full);
  const shared = await Promise.all([infer("odd", "secret-4711"), infer("good", "plain")]);
  for (const { status, text } of shared) {
    assert.equal(status, 500);
    assert.match(text, /The model failed during a run of this input and others\..*request_id/s);
    assert.doesNotMatch(text, /4711/);
  }
  assert.match(gateway.output.stdout, /cannot parse [^"]*secret-4711/);
  // Its own words.
  const own = await Promise.all([infer("odd", "mine-1"), infer("odd", "mine-2")]);
  for (const { text } of own) assert.match(text, /cannot parse mine-\d,mine-\d/);
});

test("a tenant whose inputs keep crashing a fleet's worker runs apart from the others there", { skip }, async (t) => {
  const code = `export default { run: (items) => items.map((item) => (item.startsWith("die") ? process.exit(1) : item)) };`;
  const { metrics, infer } = await fleet(t, "mortal.mjs", code, { WORKER_ISOLATION: "process", NATS_HOLD_MS: "60000" });
  const restarts = async (): Promise<number> =>
    Number(/sheaf_worker_restarts_total\{batcher="mortal"\} (\d+)/.exec(await metrics())![1]);
  assert.equal((await infer("odd", "die")).status, 502);
  // While the only worker starts its model again, calls wait in the queue.
  do assert.equal((await infer("good", "live")).status, 200);
  while ((await restarts()) !== 1);
  for (let crash = 1; crash <= 5; crash++) {
    const replies = await Promise.all([infer("odd", `die ${crash}`), infer("good", "live"), infer("odd", "live")]);
    assert.deepEqual(
      replies.map(({ status }) => status),
      [502, 200, 200],
    );
  }
  assert.equal(await restarts(), 1);
});
