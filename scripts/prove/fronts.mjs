/**
 * `npm run prove -- fronts`: what clients of `HTTP_PROCESSES=4` see of each fault, with 64 clients that ask again at once: requests, right
 * answers, 503, broken connections, wrong answers, those without an end after 30 s, and the longest time without a right answer. Linux
 * only; about two minutes. Exit code 1 for a wrong answer, one without an end, or a process that outlives the first.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { machine, table } from "../../bench/lib/machine.mjs";
import { root } from "../lib/files.mjs";

const [clients, spanMs, endlessMs] = [64, 15_000, 30_000];
const folder = mkdtempSync(join(tmpdir(), "sheaf-fronts-"));
const model = join(folder, "echo.mjs");
writeFileSync(model, `export const sample = "a";\nexport default { run: async (items) => items };\n`);

const of = (pid, what) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .split(" ")
    .filter(Boolean)
    .map(Number)
    .filter((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes(`${what}-main`));
const signal = (what, name) => (first) => process.kill(of(first, what)[0], name);
const faults = {
  "front killed": signal("front", "SIGKILL"),
  "hub killed": signal("hub", "SIGKILL"),
  "hub stopped for 8 s": async (first) => {
    signal("hub", "SIGSTOP")(first);
    await sleep(8000);
    signal("hub", "SIGCONT")(first);
  },
  "first process killed": (first) => process.kill(first, "SIGKILL"),
};

async function serve() {
  const entry = `${root}/packages/sheaf-server/dist/cli/main.js`;
  const env = { ...process.env, HTTP_PROCESSES: "4", PORT: "0", WARMUP_BATCHES: "0" };
  const child = spawn(process.execPath, [entry, "serve", model], { env, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  for await (const piece of child.stdout.iterator({ destroyOnReturn: false }))
    if (/"msg":"ready"/.test((text += piece)) && text.includes("listening on")) break;
  child.stdout.resume();
  return { pid: child.pid, url: /listening on (http:[^"]+)/.exec(text)[1] };
}

/** "right", a status, "broken", "wrong" or "endless". */
const ask = (url, agent, item) =>
  new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve("endless");
      sent.destroy();
    }, endlessMs);
    const end = (how) => {
      clearTimeout(timer);
      resolve(how);
    };
    const headers = { "content-type": "application/json" };
    const sent = request(`${url}/infer`, { agent, method: "POST", headers }, async (reply) => {
      let text = "";
      try {
        for await (const piece of reply) text += piece;
      } catch {
        return end("broken");
      }
      if (reply.statusCode !== 200) return end(String(reply.statusCode));
      end(JSON.parse(text).output === item ? "right" : "wrong");
    });
    sent.on("error", () => end("broken"));
    sent.end(JSON.stringify(item));
  });

const rows = [
  ["fault", "requests", "right", "503", "broken", "wrong", "no end", "longest silence ms", "processes left"],
];
let isKept = true;
for (const [name, fault] of Object.entries(faults)) {
  const { pid, url } = await serve();
  const children = [...of(pid, "front"), ...of(pid, "hub")];
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const counts = {};
  let [lastRightMs, silenceMs, isOn, number] = [performance.now(), 0, true, 0];
  const looped = Array.from({ length: clients }, async () => {
    while (isOn) {
      const how = await ask(url, agent, `item ${number++}`);
      counts[how] = (counts[how] ?? 0) + 1;
      if (how === "right") {
        silenceMs = Math.max(silenceMs, performance.now() - lastRightMs);
        lastRightMs = performance.now();
      } else await sleep(20);
    }
  });
  await sleep(spanMs / 5);
  await fault(pid);
  await sleep(spanMs);
  isOn = false;
  await Promise.all(looped);
  agent.destroy();
  const endsWithFirst = name.startsWith("first");
  if (!endsWithFirst) {
    const ended = [pid, ...of(pid, "front"), ...of(pid, "hub")];
    process.kill(pid, "SIGTERM");
    children.push(...ended);
  }
  await sleep(3000);
  const left = children.filter((child) => {
    try {
      return process.kill(child, 0);
    } catch {
      return false;
    }
  }).length;
  const { right = 0, 503: unavailable = 0, broken = 0, wrong = 0, endless = 0, ...others } = counts;
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  rows.push([name, all, right, unavailable, broken, wrong, endless, endsWithFirst ? "–" : Math.round(silenceMs), left]);
  if (Object.keys(others).length > 0) console.log(name, others);
  isKept &&= wrong + endless + left === 0 && Object.keys(others).length === 0;
}
rmSync(folder, { recursive: true });
console.log(`${machine()}\n${table(rows)}`);
process.exitCode = isKept ? 0 : 1;
