import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Callers, inParts, postOf } from "./callers.mjs";
import { Ledger } from "./ledger.mjs";
import { Program } from "./program.mjs";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const hungAfterMs = 30_000;
const key = "chaos";

const kinds = {
  module: {
    file: "model.mjs",
    source: (version) => `
      export const sample = (index) => index;
      export default { async run(items) {
        await new Promise((resolve) => setTimeout(resolve, 2 + 0.2 * items.length));
        return items.map((item) => ({ version: ${version}, item }));
      } };`,
    broken: "export default {",
  },
  python: {
    file: "model.py",
    source: (version) => `
from sheaf_worker import serve
serve(lambda items: [{"version": ${version}, "item": item} for item in items], sample=[1, 2])
`,
    broken: "import no_module_of_this_name\n",
  },
};

/** A model whose files change, and what may answer: nothing older than the last switch that was reported. */
class Reloaded {
  name;
  put = 1;
  serving = 1;
  /** Whether it may be absent, and since when it is there again. */
  isAway = false;
  backAtMs = -Infinity;
  #folder;
  #kind;

  constructor(folder, name, kind) {
    this.name = name;
    this.#kind = kind;
    this.#folder = join(folder, name);
    mkdirSync(this.#folder);
    this.write(this.#kind.source(1));
  }

  next() {
    this.put++;
    this.write(this.#kind.source(this.put));
  }

  break() {
    this.write(this.#kind.broken);
  }

  restore() {
    this.write(this.#kind.source(this.put));
  }

  write(text) {
    const half = join(this.#folder, ".half");
    writeFileSync(half, text);
    renameSync(half, join(this.#folder, this.#kind.file));
  }
}

/** Load on a server with a folder of models, which are replaced, broken and unloaded all the time. */
export async function chaosOfReloads({ seconds, draw, hasPython }) {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-reloads-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const models = [new Reloaded(folder, "module", kinds.module)];
  if (hasPython) models.push(new Reloaded(folder, "python", kinds.python));
  const environment = { API_KEY: key, MAX_BATCH_SIZE: "8", WARMUP_BATCHES: "2", LOG_LEVEL: "error" };
  const server = new Program("server with a folder of models", ["serve", folder], { environment });
  await server.start();
  const ledger = new Ledger();
  const callers = new Callers(server, ledger);
  const faults = {};
  const count = (what) => (faults[what] = (faults[what] ?? 0) + 1);
  let number = 0;

  const send = async () => {
    const model = draw.of(models);
    const { serving: oldest } = model;
    const items = Array.from({ length: draw.chance(0.8) ? 1 : 2 + draw.below(20) }, () => ++number);
    const body = JSON.stringify({ inputs: items });
    const exchange = await callers.exchange(
      `${model.name} ${body}`,
      inParts(postOf(`/infer/${model.name}`, [`authorization: Bearer ${key}`], body), draw),
      { hungAfterMs, leaveAfterMs: draw.chance(0.03) ? draw.between(0, 50) : undefined, pauseMs: draw.between(1, 100) },
    );
    if (exchange === undefined) return;
    const { answer, ended, sentAtMs } = exchange;
    if (answer.status === 429) return ended("refused (429)");
    if ([404, 503].includes(answer.status) && (model.isAway || model.backAtMs > sentAtMs))
      return ended("unloaded (404, or 503 while it loads)");
    if (answer.status !== 200) return ended("wrong", `${answer.status} ${answer.body.slice(0, 200)}`);
    const { outputs } = JSON.parse(answer.body);
    const isOwn = items.every((item, i) => outputs[i]?.item === item);
    const versions = [...new Set(outputs.map(({ version }) => version))];
    const isRight = versions.length === 1 && versions[0] >= oldest && versions[0] <= model.put;
    if (isOwn && isRight) return ended("ok");
    ended("wrong", `versions ${versions} where ${oldest} to ${model.put} served: ${answer.body.slice(0, 200)}`);
  };

  const act = async (model, action) => {
    const reply = await fetch(`http://127.0.0.1:${server.port}/v2/repository/models/${model.name}/${action}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: "{}",
    });
    return { status: reply.status, text: await reply.text() };
  };
  const mustBe = (expected, { status, text }, what) => {
    if (status !== expected) ledger.found("wrong", what, `${status} ${text.slice(0, 300)}`);
  };
  /** A load that is refused leaves what was there: the version before, or nothing. */
  const reload = async (model, loads = 1) => {
    model.next();
    const version = model.put;
    const replies = await Promise.all(Array.from({ length: loads }, () => act(model, "load")));
    for (const reply of replies) mustBe(200, reply, `load of ${model.name}, ${loads} at once`);
    if (!replies.some(({ status }) => status === 200)) return;
    model.serving = version;
    if (model.isAway) model.backAtMs = performance.now();
    model.isAway = false;
  };

  const disturb = async (isOver) => {
    while (!isOver()) {
      await sleep(draw.between(300, 2500));
      const model = draw.of(models);
      const what = draw.between(0, 1);
      if (what < 0.55) {
        count("a new version");
        await reload(model);
      } else if (what < 0.75) {
        count("a version that does not load");
        model.break();
        mustBe(422, await act(model, "load"), `load of a broken ${model.name}`);
        model.restore();
      } else if (what < 0.9) {
        count("three loads at once");
        await reload(model, 3);
      } else {
        count("an unload, and a load");
        model.isAway = true;
        mustBe(200, await act(model, "unload"), `unload of ${model.name}`);
        await reload(model);
      }
    }
  };
  const load = async (isOver) => {
    while (!isOver()) {
      if (callers.open < 30) void send();
      await sleep(draw.between(0, 25));
    }
  };

  const endsAtMs = performance.now() + 1000 * seconds;
  const isOver = () => performance.now() > endsAtMs || server.crash !== undefined;
  await Promise.all([load(isOver), disturb(isOver)]);
  while (ledger.open > 0) await sleep(50);
  callers.closeConnections();
  await server.close();
  return { name: server.name, ledger, faults, crash: server.crash, exits: server.exits };
}
