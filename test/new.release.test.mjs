// What `npm run new` lays out builds, is well formed and registered, and its test fails until the change is written.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { root } from "../scripts/lib/files.mjs";

const copy = realpathSync(mkdtempSync(join(tmpdir(), "sheaf-new-")));
after(() => rmSync(copy, { recursive: true }));

/** Runs a program of the copy; gives its status and what it printed. */
const run = (file, ...words) =>
  new Promise((resolve) => {
    // A test runner inside a test runner would report to the outer one.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    execFile(process.execPath, [file, ...words], { cwd: copy, env, maxBuffer: 2 ** 24 }, (error, stdout, stderr) =>
      resolve({ status: error?.code ?? 0, output: stdout + stderr }),
    );
  });

/** Kind, name, and the most files that a first change of that kind may touch. */
const changes = [
  ["policy", "even-seconds", 4],
  ["route", "similarity", 4],
  ["adapter", "sqs", 6],
  ["metric", "open-files", 4],
];
const printed = new Map();

before(async () => {
  const tracked = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
  for (const path of tracked.toString().split("\0"))
    if (path !== "" && existsSync(join(root, path))) cpSync(join(root, path), join(copy, path));
  // The packages of the copy are its own; what was installed is shared.
  for (const path of installed()) {
    mkdirSync(dirname(join(copy, "node_modules", path)), { recursive: true });
    const own = /^sheaf(?:-server)?$/.test(path);
    symlinkSync(
      own ? join(copy, "packages", path) : join(root, "node_modules", path),
      join(copy, "node_modules", path),
    );
  }
  for (const [kind, name] of changes) printed.set(kind, await run("scripts/new.mjs", kind, name));
  const build = await run("scripts/build.mjs", "--tests");
  assert.equal(build.status, 0, build.output);
});

/** The entries of node_modules, those of scopes one by one. */
function installed() {
  const folder = join(root, "node_modules");
  return readdirSync(folder).flatMap((name) =>
    name.startsWith("@") ? readdirSync(join(folder, name)).map((inner) => `${name}/${inner}`) : [name],
  );
}

for (const [kind, name, most] of changes) {
  const touched = (mark = "") => [...printed.get(kind).output.matchAll(new RegExp(`^${mark}\\w* +(\\S+\\.\\w+)$`, "gm"))].map(([, path]) => path); // prettier-ignore

  test(`a new ${kind} touches at most ${most} files, all of them formatted`, async () => {
    assert.equal(printed.get(kind).status, 0, printed.get(kind).output);
    assert.ok(touched().length >= 4 && touched().length <= most, touched().join("\n"));
    const { status, output } = await run("node_modules/prettier/bin/prettier.cjs", "--check", ...touched());
    assert.equal(status, 0, output);
  });

  test(`the test of a new ${kind} fails until the change is written`, async () => {
    const file = touched("new").find((path) => path.endsWith(".test.ts"));
    const built = file.replace("/test/", "/dist-test/").replace(/\.ts$/, ".js");
    const { status, output } = await run("--test", built);
    assert.notEqual(status, 0, output);
    assert.match(output, /^# fail 1$/m);
  });

  test(`a name that is taken is refused, and nothing is written over: ${kind}`, async () => {
    const [first] = touched("new");
    const text = readFileSync(join(copy, first), "utf8");
    const { status, output } = await run("scripts/new.mjs", kind, name);
    assert.equal(status, 1);
    assert.match(output, /already/);
    assert.equal(readFileSync(join(copy, first), "utf8"), text);
  });
}

test("every npm test that the next steps name has tests to run", async () => {
  const words = [...printed.values()].flatMap(({ output }) => [...output.matchAll(/npm test -- ([\w/-]+)/g)].map(([, word]) => word)); // prettier-ignore
  assert.ok(words.length >= 6, words.join());
  const list = `
    import { testFiles } from "./scripts/lib/suites.mjs";
    console.log(${JSON.stringify(words)}.filter((word) => testFiles([word]).length === 0).join());`;
  const { output } = await run("--input-type=module", "--eval", list);
  assert.equal(output.trim(), "");
});

test("what was laid out passes the lint and the checks of the repository", async () => {
  const sources = [...printed.values()].flatMap(({ output }) => [...output.matchAll(/(\S+\.ts)$/gm)].map(([, path]) => path)); // prettier-ignore
  const lint = await run("node_modules/oxlint/bin/oxlint", ...sources);
  assert.equal(lint.status, 0, lint.output);
  const tests = ["docs", "public-exports", "boundaries", "rooms"].map((name) => `test/${name}.test.mjs`);
  const routes = [
    "--test-name-pattern=every (route|metric)",
    "packages/sheaf-server/dist-test/server/documentation.test.js",
  ];
  for (const words of [tests, routes]) {
    const { status, output } = await run("--test", ...words);
    assert.equal(status, 0, output);
  }
});

test("a kind or a name that makes no sense is refused with what is meant", async () => {
  for (const words of [
    [],
    ["policy"],
    ["policy", "EvenSeconds"],
    ["page", "about"],
    ["policy", "../out"],
    ["route", "a", "b"],
  ]) {
    const { status, output } = await run("scripts/new.mjs", ...words);
    assert.equal(status, 2, words.join(" "));
    assert.match(output, /policy \| route \| adapter \| metric NAME/);
  }
});
