import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { startNats, whyNoNats } from "../../../../test/support/nats-server.mjs";
import { folder as made, scaling, write } from "../runners/made-models.js";
import { post, until, type Reply } from "../asking.js";
import { few, pythonModel, skipWithoutPython } from "./python.js";
import { assertResult } from "../../../../test/support/result.mjs";
import { ready, sheaf, type SheafProcess } from "./sheaf-process.js";

const base = mkdtempSync(join(tmpdir(), "sheaf-folder-"));
after(() => {
  rmSync(base, { recursive: true, force: true });
  rmSync(made, { recursive: true, force: true });
});

/** A Python model that answers with its version. */
const python = (version: number): string =>
  `from sheaf_worker import serve\nserve(lambda texts: ["${version}"] * len(texts), inputs="text", outputs="text", sample=["a", "b"])\n`;

/** Put into place as a whole. */
function put(path: string, content: string | Uint8Array): void {
  writeFileSync(join(base, "half"), content);
  renameSync(join(base, "half"), path);
}

const asking =
  (url: string) =>
  (path: string, body: unknown = {}): Promise<Reply> =>
    post(url + path, body, { authorization: "Bearer key" });

test(
  "a folder with ONNX and Python models: each is replaced while it answers",
  { skip: skipWithoutPython },
  async (t) => {
    const models = join(base, "models");
    mkdirSync(join(models, "scale", "1"), { recursive: true });
    cpSync(write("one.onnx", scaling(["batch", 3])), join(models, "scale", "1", "model.onnx"));
    put(join(models, "words.py"), python(1));
    cpSync(pythonModel("doubled"), join(models, "doubled.py"));
    const served = sheaf(t, ["serve", models, "--watch", "--port", "0"], { ...few, API_KEY: "key" });
    const ask = asking(await ready(served));
    assert.equal((await ask("/infer/words", { input: "x" })).json.output, "1");
    assert.deepEqual((await ask("/infer/doubled", [1, 2, 3])).json.output, [2, 4, 6]);
    assert.deepEqual((await ask("/infer/scale", [1, 1, 1])).json.output, [3, 3, 3]);

    // Requests go on all the time, and every one is answered by one version or the other.
    let isOver = false;
    const seen = new Set<unknown>();
    const load = (async () => {
      while (!isOver) {
        const { status, json } = await ask("/infer/words", { inputs: ["x", "y", "z"] });
        assert.equal(status, 200, JSON.stringify(json));
        assertResult(new Set(json.outputs).size, 1, "a request is one version's");
        seen.add(json.outputs[0]);
      }
    })();
    put(join(models, "words.py"), python(2));
    assert.equal((await ask("/v2/repository/models/words/load")).status, 200);
    assert.equal((await ask("/infer/words", { input: "x" })).json.output, "2");
    put(join(models, "words.py"), "import nothing_of_this_name\n");
    const broken = await ask("/v2/repository/models/words/load");
    assert.equal(broken.status, 422);
    assert.match(broken.json.error, /words did not load: .*ModuleNotFoundError/s);
    assert.equal((await ask("/infer/words", { input: "x" })).json.output, "2");
    isOver = true;
    await load;
    assert.deepEqual(seen, new Set(["1", "2"]));

    // What is put into the folder, the watch takes up by itself.
    mkdirSync(join(models, "scale", ".2"));
    cpSync(write("two.onnx", scaling(["batch", 2])), join(models, "scale", ".2", "model.onnx"));
    renameSync(join(models, "scale", ".2"), join(models, "scale", "2"));
    await until(async () => (await ask("/infer/scale", [1, 1])).status === 200);
    const index: any[] = (await ask("/v2/repository/index")).json;
    assert.deepEqual(index.map(({ name, version, state }) => `${name} ${version} ${state}`), ["doubled 1 READY", "scale 2 READY", "words 1 READY"]); // prettier-ignore
    served.child.kill("SIGTERM");
    assert.equal(await served.ended, 0, served.output.stderr);
  },
);

test(
  "a failed load is one line of the log, with type, version, file and line; a switch is one with both versions",
  { skip: skipWithoutPython },
  async (t) => {
    const models = join(base, "logged");
    const version = (number: number): string => {
      mkdirSync(join(models, "words", String(number)), { recursive: true });
      return join(models, "words", String(number), "model.py");
    };
    put(version(1), python(1));
    put(join(models, "lacks.py"), "import json\nimport nothing_of_this_name\n");
    put(join(models, "throws.mjs"), 'export default { load: () => { throw new Error("no weights"); }, run: (items) => items };'); // prettier-ignore
    const served = sheaf(t, ["serve", models, "--port", "0"], { ...few, API_KEY: "key" });
    const ask = asking(await ready(served));
    put(
      version(2),
      'from sheaf_worker import serve\ndef load(data):\n    return data["weights"]\nserve(lambda texts, model: texts, load=load, inputs="text", outputs="text")\n',
    );
    const broken = await ask("/v2/repository/models/words/load");
    assert.match(broken.json.error, /^words did not load: .*model\.py cannot be served: KeyError: 'weights'$/);
    put(version(3), python(3));
    assert.equal((await ask("/v2/repository/models/words/load")).status, 200);
    // From versions to a file without any, which is version 1.
    rmSync(join(models, "words"), { recursive: true });
    put(join(models, "words.py"), python(4));
    assert.equal((await ask("/v2/repository/models/words/load")).status, 200);
    served.child.kill("SIGTERM");
    assert.equal(await served.ended, 0, served.output.stderr);

    const lines: any[] = served.output.stdout.trim().split("\n").map((line) => JSON.parse(line)); // prettier-ignore
    const about = (text: string): any[] => lines.filter((line) => line.level > 30 && JSON.stringify(line).includes(text)); // prettier-ignore
    const [failed, ...more] = about("'weights'");
    assert.deepEqual(more, [], "once");
    assert.deepEqual(
      [failed.level, failed.msg, failed.model, failed.version, failed.versionBefore, failed.err.type, failed.place],
      [50, "model failed to load", "words", "2", "1", "KeyError", `${version(2)}, line 3`],
    );
    assert.match(failed.err.message, /^[^:]*model\.py cannot be served: KeyError: 'weights'$/);
    assert.match(failed.err.stack, /^Traceback [\s\S]*KeyError: 'weights'\n$/);
    const [lacks, ...others] = about("nothing_of_this_name");
    assert.deepEqual(others, [], "once");
    assert.deepEqual([lacks.err.type, lacks.place], ["ModuleNotFoundError", `${join(models, "lacks.py")}, line 2`]);
    assert.equal(lacks.err.message.split("No module named").length, 2, "its message is not said twice");
    assert.deepEqual(about("no weights").map(({ model, msg, err }) => [model, msg, err.type, err.message]), [["throws", "model failed to load", "Error", "no weights"]]); // prettier-ignore

    const ofWords = lines.filter(({ model, msg }) => model === "words" && msg.startsWith("model is ready"));
    assert.deepEqual(
      ofWords.map(({ msg, version, versionBefore }) => [msg, version, versionBefore]),
      [
        ["model is ready", "1", undefined],
        ["model is ready, and replaces the version before", "3", "1"],
        ["model is ready, and replaces the version before", "1", "3"],
      ],
    );
  },
);

test("what does not go with a folder of models is said at the start, with exit 2", async (t) => {
  const models = join(base, "empty");
  mkdirSync(models);
  const refused: [string[], Record<string, string>, RegExp][] = [
    [["mlp", "--watch"], {}, /WATCH needs a folder of models/],
    [[models], { MODEL_VERSION: "1" }, /MODEL_VERSION cannot be combined with a folder of models/],
    [[models, models], {}, /are both folders of models; a server takes one/],
  ];
  for (const [words, env, message] of refused) {
    const served = sheaf(t, ["serve", ...words, "--port", "0"], env);
    assert.equal(await served.ended, 2);
    assert.match(served.output.stderr, message);
  }
  // Two models of one name: both are named, without a stack.
  put(join(base, "twin.mjs"), "export default { run: (items) => items };");
  const other = join(base, "twins");
  mkdirSync(other);
  put(join(other, "twin.mjs"), "export default { run: (items) => items };");
  for (const second of [join(other, "twin.mjs"), other]) {
    const served = sheaf(t, ["serve", join(base, "twin.mjs"), second, "--port", "0"]);
    assert.equal(await served.ended, 2);
    assert.equal(
      served.output.stderr,
      `sheaf serve: ${join(base, "twin.mjs")} and ${join(other, "twin.mjs")} are both named twin; rename one of them, or give one a name in the config file.\n`,
    );
  }
  // An empty one is filled later.
  const served = sheaf(t, ["serve", models, "--port", "0"], { API_KEY: "key" });
  const ask = asking(await ready(served));
  assert.equal((await ask("/infer", 1)).status, 404);
  put(join(models, "a.mjs"), "export default { run: (items) => items };");
  assert.equal((await ask("/v2/repository/models/a/load")).status, 200);
  assert.equal((await ask("/infer", 7)).json.output, 7);
});

test(
  "a worker of a fleet replaces a model as well: nothing is lost, and nothing mixed",
  { skip: whyNoNats() ?? false },
  async (t) => {
    const nats = await startNats();
    t.after(() => nats.stop());
    const models = join(base, "fleet");
    mkdirSync(models);
    const version = (number: number): string => `export default { run: (items) => items.map(() => ${number}) };`;
    put(join(models, "a.mjs"), version(1));
    const env = { NATS_URL: nats.url, API_KEY: "key" };
    const start = (role: string): SheafProcess => sheaf(t, ["serve", models, "--role", role, "--port", "0"], env);
    const [worker, gateway] = [start("worker"), start("gateway")];
    const [workerUrl, url] = await Promise.all([ready(worker), ready(gateway)]);
    const ask = asking(url);
    await until(async () => (await ask("/infer/a", { input: 0 })).json.output === 1);
    let isOver = false;
    const answers: number[] = [];
    const load = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (!isOver) {
          const { status, json } = await ask("/infer/a", { inputs: [1, 2] });
          assert.equal(status, 200, JSON.stringify(json));
          answers.push(...json.outputs);
        }
      }),
    );
    put(join(models, "a.mjs"), version(2));
    assert.equal((await asking(workerUrl)("/v2/repository/models/a/load")).status, 200);
    await until(() => answers.at(-1) === 2);
    isOver = true;
    await load;
    assertResult([...new Set(answers)], [1, 2]);
    assert.equal((await ask("/infer/a", { input: 0 })).json.output, 2);
  },
);
