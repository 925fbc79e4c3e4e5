/**
 * `npm run prove -- client-storms`: clients with the patience and the retries of openai's, and KServe's own over gRPC, through a
 * surge of three times the load: their retries must not keep the server busy with requests that nobody waits for, once the surge
 * is over. And a crowd on a short queue, which is answered with two retries each. It measures: a busy machine may fail it.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { createServer } from "../packages/sheaf-server/dist/index.js";
import { runProgram, runPython } from "../integration/lib/programs.mjs";
import { skipWithoutPython } from "../integration/lib/python.mjs";

/** A run takes this long for up to `batch` items: the machine's own speed plays no part. */
const runMs = 300;
const batch = 4;
const capacityPerS = (1000 * batch) / runMs;
const course = { beforeS: 2, surgeS: 5, afterS: 9, factor: 3, patienceS: 2 };
/** The seconds that are looked at: the surge has been over for a while, and other operations still begin after them. */
const looked = { fromS: course.beforeS + course.surgeS + 3, toS: course.beforeS + course.surgeS + 7 };

const clients = {
  "openai for JavaScript": {
    run: ({ url }, given) => runProgram([process.execPath, "openai-storm.mjs", `${url}/v1`], given),
  },
  "openai for Python": {
    run: ({ url }, given) => runPython("openai_storm_client.py", [`${url}/v1`], given),
    skip: skipWithoutPython,
  },
  "kserve over gRPC": {
    run: ({ grpcAddress }, given) => runPython("grpc_storm_client.py", [grpcAddress], given),
    skip: skipWithoutPython,
  },
};

// Each takes its time asleep, so three take hardly longer than one.
suite("after a surge", { concurrency: 3 }, () => {
  for (const [name, { run, skip = false }] of Object.entries(clients))
    for (const load of [0.6, 0.8])
      test(`${name}: after a surge at ${load} of capacity most operations are answered again`, { skip }, async (t) => {
        const shares = await answeredThrough(t, (server) =>
          run(server, { ...course, perS: load * capacityPerS, model: "number" }),
        );
        // In order of arrival each request would run after its caller has left, and nobody would be answered.
        const after = shares.slice(looked.fromS, looked.toS);
        assert.ok(after.reduce((sum, share) => sum + share, 0) / after.length >= 0.5, shares.join(" "));
      });
});

test(
  "openai for Python: 400 calls at once on a queue of 64 are all answered, with its two retries",
  { skip: skipWithoutPython },
  async (t) => {
    const vectorOf = (text) => Float32Array.of(Number(text), Number(text) ** 2);
    const number = {
      name: "number",
      input: { kind: "text" },
      output: { kind: "vector", length: 2 },
      // 40 ms a batch of 8: the queue takes 320 ms.
      run: (texts) => new Promise((resolve) => setTimeout(() => resolve(texts.map(vectorOf)), 40)),
      warmUpItem: "1",
    };
    const settings = { port: 0, logLevel: "silent", maxBatchSize: 8, queueMaxSize: 64 };
    const server = await createServer({ models: [number], settings });
    t.after(() => server.close());
    const url = await server.listen();
    await server.ready();
    const many = Array.from({ length: 400 }, (_, i) => String(i));
    const { replies } = await runPython("openai_crowd_client.py", [`${url}/v1`], { model: "number", texts: [], many });
    assert.deepEqual(replies[0], many.map((text) => [...vectorOf(text)])); // prettier-ignore
  },
);

/** Answers ÷ operations, by the second in which these began. A machine that stood still meanwhile gets two more chances. */
async function answeredThrough(t, run) {
  for (let chance = 1; ; chance++) {
    const server = await sleepingServer();
    const { begun, answered, stoodStillMs } = await run(server).finally(server.close);
    const shares = begun.map((count, second) => Number((answered[second] / count).toFixed(2)));
    t.diagnostic(`stood still for ${Math.round(stoodStillMs)} ms at most; ${shares.join(" ")}`);
    if (stoodStillMs < 500 || chance === 3) return shares;
  }
}

async function sleepingServer() {
  const number = {
    name: "number",
    input: { kind: "text" },
    output: { kind: "vector", length: 1 },
    run: (texts) => new Promise((resolve) => setTimeout(() => resolve(texts.map(() => Float32Array.of(1))), runMs)),
    warmUpItem: "1",
  };
  const settings = { port: 0, grpcPort: 0, logLevel: "silent", maxBatchSize: batch };
  const server = await createServer({ models: [number], settings });
  const url = await server.listen();
  await server.ready();
  return { url, grpcAddress: server.grpcAddress, close: () => server.close({ graceMs: 0 }) };
}
