// What a user gets: the packed tarballs, installed into an empty project outside the repository.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { root } from "../scripts/lib/files.mjs";
import { readmeSteps, sheafSteps } from "../scripts/lib/readme.mjs";
import { freePort, until } from "./support/serving.mjs";
import { installTarballs, packTarballs, userEnvironment } from "../scripts/lib/tarballs.mjs";

const folder = mkdtempSync(join(tmpdir(), "sheaf-tarballs-"));
const project = join(folder, "project");
const options = { cwd: project, env: userEnvironment() };
let tarballs;
let warnings;
before(async () => {
  tarballs = await packTarballs(["sheaf", "sheaf-server"], join(folder, "packed"));
  warnings = await installTarballs(tarballs, project);
});
after(() => rmSync(folder, { recursive: true }));

test("a tarball holds the build, a README and the license, and nothing else", () => {
  const builds = [
    /^((cjs|lib)\/.+\.(js|d\.ts)|cjs\/package\.json|python\/sheaf_worker\.py)$/,
    /^(bin\/sheaf\.js|dist\/.+\.(js|d\.ts|js\.map|d\.ts\.map)|dist\/dashboard\/.+|src\/.+|NOTICE)$/,
  ];
  const entry = ["lib/index.js", "dist/index.js"];
  for (const [index, { files }] of tarballs.entries()) {
    for (const name of ["README.md", "LICENSE", "package.json", entry[index]]) assert.ok(files.includes(name), name);
    const allowed = /^(README\.md|LICENSE|package\.json)$/;
    const other = files.filter((file) => !allowed.test(file) && !builds[index].test(file));
    assert.deepEqual(other, []);
  }
  for (const name of ["sheaf", "sheaf-server"]) assert.equal(read(`packages/${name}/LICENSE`), read("LICENSE"));
  // The rest of the repository's names the parts of the site, which no package holds.
  assert.ok(read("NOTICE").startsWith(read("packages/sheaf-server/NOTICE")));
  assert.ok(tarballs[1].files.includes("NOTICE"), "the origin of the built-in model's weights");
});

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const shell = (command) => promisify(execFile)("sh", ["-c", command], { ...options, timeout: 300_000 });

test("they install without a warning that a dependency does not support this Node", () => {
  // Of the oldest Node that is supported, in CI; a newer one has less to warn of.
  assert.doesNotMatch(warnings, /EBADENGINE|Unsupported engine/);
});

async function run(file, script) {
  writeFileSync(join(project, file), script);
  return (await promisify(execFile)(process.execPath, [file], options)).stdout.trim();
}

const use = `
  let runs = 0;
  const double = createBatcher((numbers) => (runs++, numbers.map((number) => 2 * number)));
  Promise.all([1, 2, 3].map(double)).then((results) => console.log(JSON.stringify({ results, runs })));`;
const used = JSON.stringify({ results: [2, 4, 6], runs: 1 });

test("an ES module imports the installed sheaf", async () => {
  assert.equal(await run("use.mjs", `import { createBatcher } from "sheaf"; ${use}`), used);
});

test("a CommonJS module requires the installed sheaf", async () => {
  assert.equal(await run("use.cjs", `const { createBatcher } = require("sheaf"); ${use}`), used);
});

test("the installed command serves, answers README.md's curl with real embeddings, and ends with 0 on SIGTERM", async () => {
  const port = await freePort();
  const env = { ...options.env, PORT: String(port) };
  const server = spawn(join(project, "node_modules/.bin/sheaf"), ["serve"], { ...options, env });
  const exited = new Promise((resolve) => server.once("exit", (code, signal) => resolve(code ?? signal)));
  let log = "";
  for (const stream of [server.stdout, server.stderr]) stream.setEncoding("utf8").on("data", (text) => (log += text));
  try {
    await until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, exited).catch((error) => {
      throw new Error(`${error.message}\n${log}`);
    });
    for (const { command } of readmeSteps().filter(({ kind }) => kind === "ask")) {
      const { stdout } = await shell(command.replaceAll("localhost:8000", `127.0.0.1:${port}`));
      const vectors = JSON.parse(stdout).data.map(({ embedding }) => embedding);
      assert.deepEqual(vectors.map(({ length }) => length), [512, 512]); // prettier-ignore
      for (const vector of vectors) assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-3, "a unit vector");
      for (const file of ["", "dashboard/main.js", "dashboard/style.css", "dashboard/uPlot.js"])
        assert.equal((await fetch(`http://127.0.0.1:${port}/${file}`)).status, 200, `/${file}`);
    }
  } finally {
    server.kill("SIGTERM");
  }
  assert.equal(await exited, 0, log);
});

test("where the packages that draw charts are missing, --report says how to install them; then it draws", async () => {
  const bench = "npx sheaf bench mlp --duration 1s --warm-up 0s --rate 50 --report report.html";
  const { code, stdout, stderr } = await shell(bench).catch((error) => error);
  assert.deepEqual({ code, stdout }, { code: 1, stdout: "" });
  const [, install] =
    /^sheaf bench: vega is not installed\. .*: (npm install .+)$/m.exec(stderr) ?? assert.fail(stderr);
  await shell(`${install} --no-audit --no-fund`);
  await shell(bench);
  assert.ok(readFileSync(join(project, "report.html"), "utf8").match(/<svg/g).length >= 2);
});

for (const { page, command, output } of sheafSteps())
  for (const line of command.split("\n"))
    test(`the installed command does what ${page} shows: ${line}`, async () => {
      // What it measures is for the proof and the bench; here it is to run, and briefly.
      const brief = line
        .replace(/--max-time \d+s/, "--max-time 1s")
        .replace(/--duration \d+s/, "--duration 1s --warm-up 0s");
      // A measurement on a busy machine may say that nothing is settled, and end with 1.
      const { stdout } = await shell(brief).catch((error) => {
        if (!error.stdout.includes("not settled")) throw error;
        return error;
      });
      assert.notEqual(stdout, "");
      if (output !== undefined)
        assert.equal(stdout.trim(), output.trim(), `${page} shows something else. Now it is:\n${stdout}`);
    });
