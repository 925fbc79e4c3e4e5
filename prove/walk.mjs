/**
 * `npm run prove -- walk [most]`: the files that one warm `POST /infer` to mlp enters, from the socket through the worker
 * thread and back, less those that an idle server enters too; and the files that one library call enters. By V8's precise
 * coverage. Fails where the request enters more than `most` (default 68).
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";

const self = fileURLToPath(import.meta.url);
if (process.env.SHEAF_WALK === undefined && isMainThread) {
  const preload = new URL("./lib/covered.mjs", import.meta.url).href;
  const env = { ...process.env, SHEAF_WALK: "1" };
  const { status } = spawnSync(process.execPath, ["--import", preload, self, ...process.argv.slice(2)], {
    stdio: "inherit",
    env,
  });
  process.exitCode = status ?? 1;
} else {
  await walk(Number(process.argv[2] ?? 68));
}

async function walk(most) {
  const { calledFiles } = await import("./lib/covered.mjs");
  const { createBatcher } = await import("../packages/sheaf/dist/index.js");
  const { builtinModels, createServer, defaultSettings, workerModel } =
    await import("../packages/sheaf-server/dist/index.js");
  const settings = { ...defaultSettings, port: 0, logLevel: "warn" };
  const server = await createServer({ models: [workerModel(builtinModels.mlp(), settings)], settings });
  const url = await server.listen();
  await server.ready();
  const look = async () => {
    const [here, inWorker] = await Promise.all([calledFiles(), workerFiles()]);
    return { here, inWorker };
  };
  const body = JSON.stringify(Array.from({ length: 768 }, (_, i) => i / 768));
  const post = async () => {
    const response = await fetch(`${url}/infer`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`);
    await response.arrayBuffer();
  };
  for (let i = 0; i < 50; i++) await post();
  const idle = new Set();
  await look();
  for (let i = 0; i < 4; i++) {
    await sleep(1500);
    for (const files of Object.values(await look())) for (const file of files) idle.add(file);
  }
  await look();
  await post();
  const seen = await look();
  await server.close();
  const files = [...new Set([...seen.here, ...seen.inWorker])].filter((file) => !idle.has(file)).sort();
  print(`One warm POST /infer to mlp enters ${files.length} files; idle ticks alone enter ${idle.size}.`, files);

  const batcher = createBatcher((items) => items);
  for (let i = 0; i < 50; i++) await batcher(i);
  await sleep(100);
  await calledFiles();
  await batcher(1);
  print("One library call enters", await calledFiles());
  await batcher.close();
  if (files.length > most) {
    console.error(`✖ ${files.length} files, more than ${most}`);
    process.exitCode = 1;
  }
}

function workerFiles() {
  const asked = new BroadcastChannel("covered: look");
  const answers = new BroadcastChannel("covered: files");
  return new Promise((resolve) => {
    const files = [];
    answers.addEventListener("message", ({ data }) => files.push(...data.files));
    asked.postMessage("look");
    setTimeout(() => {
      asked.close();
      answers.close();
      resolve(files);
    }, 150);
  });
}

function print(title, files) {
  console.log(`${title} (${files.length})\n${files.map((file) => `  ${file}`).join("\n")}\n`);
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
