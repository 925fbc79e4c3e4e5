/**
 * `npm run prove -- walk [--files]`: how many files one warm `POST /infer` to mlp enters, from the socket through the worker
 * thread and back, less those that an idle server enters too; and how many one library call enters. By V8's precise
 * coverage. Fails where the request enters a tenth more files than recorded, or the library call one file or one line more; and
 * where a bundle of the library has become heavier. `--files` lists them.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { isMainThread } from "node:worker_threads";
import { bundledKb } from "../../bench/lib/bundled-kb.mjs";

/** Each walk when it was last looked at, its lines without the policies'; write a lower number down where one has become shorter. */
const recorded = { request: { files: 76 }, call: { files: 26, lines: 3_668 }, bundleKb: 50.8 };

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
  const { values } = parseArgs({ options: { files: { type: "boolean", default: false } } });
  await walk(values.files);
}

async function walk(isListed) {
  const { calledFiles } = await import("./lib/covered.mjs");
  const { createBatcher } = await import("../../packages/sheaf/dist/index.js");
  const { builtinModels, createServer, defaultSettings, workerModel } =
    await import("../../packages/sheaf-server/dist/index.js");
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

  const batcher = createBatcher((items) => items);
  for (let i = 0; i < 50; i++) await batcher(i);
  await sleep(100);
  // The shortest of several: in a pause of the machine a run takes long enough to learn from.
  let called;
  for (let i = 0; i < 20; i++) {
    await calledFiles();
    await batcher(1);
    const entered = await calledFiles();
    if (called === undefined || entered.length < called.length) called = entered;
  }
  await batcher.close();
  report("One warm POST /infer to mlp", files, 1.1 * recorded.request.files);
  const kb = bundledKb();
  const isHeavier = Number(kb.toFixed(1)) > recorded.bundleKb;
  if (isHeavier) process.exitCode = 1;
  console.log(`${isHeavier ? "✖" : "✔"} walk: createBatcher and greedy() take ${kb.toFixed(1)} kB`);
  report("One library call", called, recorded.call.files, recorded.call.lines);

  function report(what, entered, mostFiles, mostLines = Infinity) {
    const lines = new Map(entered.map((file) => [file, linesOf(file)]));
    const sum = [...lines].reduce((all, [file, own]) => all + (file.includes("/policies/") ? 0 : own), 0);
    const isLonger = entered.length > mostFiles || sum > mostLines;
    console.log(
      `${isLonger ? "✖" : "✔"} walk: ${what} enters ${entered.length} files, ${sum} lines outside of the policies`,
    );
    if (isLonger) process.exitCode = 1;
    if (isListed || isLonger)
      console.log([...lines].map(([file, own]) => `${String(own).padStart(5)} ${file}`).join("\n"));
  }
}

/** Lines of a built file's source. */
function linesOf(file) {
  const source = `packages/${file.replace("/dist/", "/src/")}`;
  const path = [source.replace(/\.js$/, ".ts"), source].find((each) => existsSync(each));
  return path === undefined ? 0 : readFileSync(path, "utf8").split("\n").length - 1;
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

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
