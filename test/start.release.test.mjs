// `npm start` in a copy of the repository: it builds, and a build here would take the files away that other tests run.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../scripts/lib/files.mjs";
import { freePort, until } from "./support/serving.mjs";
import { userEnvironment } from "../scripts/lib/tarballs.mjs";

const isOurs = (path) => !/\/(node_modules|dist|dist-test|test)$/.test(path);

function copyOfRepository(t) {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-start-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const path of ["package.json", "scripts", "packages"])
    cpSync(`${root}/${path}`, `${folder}/${path}`, { recursive: true, filter: isOurs });
  symlinkSync(`${root}/node_modules`, `${folder}/node_modules`);
  return folder;
}

test("npm start runs with the flags of the command", () => {
  const { start } = JSON.parse(readFileSync(`${root}/package.json`, "utf8")).scripts;
  const [shebang] = readFileSync(`${root}/packages/sheaf-server/bin/sheaf.js`, "utf8").split("\n");
  const flags = (line) => line.match(/--[\w-]+=\S+/g);
  assert.ok(flags(shebang).length > 0);
  assert.deepEqual(flags(start), flags(shebang));
});

const answers = (port) => fetch(`http://127.0.0.1:${port}/readyz`).then(({ ok }) => ok);

test(
  "SIGTERM to npm start ends the server, which finishes what is in",
  { skip: process.platform === "win32" },
  async (t) => {
    const port = await freePort();
    const npm = spawn("npm", ["start", "--", "mlp"], {
      cwd: copyOfRepository(t),
      env: { ...userEnvironment(), PORT: String(port), WARMUP_BATCHES: "0" },
      // A group of its own: whatever is left of it is killed at the end.
      detached: true,
    });
    t.after(() => {
      try {
        if (npm.pid !== undefined) process.kill(0 - npm.pid, "SIGKILL");
      } catch {
        // Nothing is left.
      }
    });
    let log = "";
    for (const stream of [npm.stdout, npm.stderr]) stream.setEncoding("utf8").on("data", (text) => (log += text));
    const exited = new Promise((resolve) => npm.once("exit", (code, signal) => resolve(code ?? signal)));
    await until(() => answers(port), exited, 120).catch((error) => {
      throw new Error(`${error.message}\n${log}`);
    });
    assert.match(log, /^Building both packages.*ready once the log says "ready"\.$/m);
    assert.match(log, /"msg":"ready"/);
    // Its output ends when its last process does.
    const closed = new Promise((resolve) => npm.once("close", resolve));
    npm.kill("SIGTERM");
    await closed;
    assert.match(log, /"signal":"SIGTERM","msg":"shutting down"/);
    await assert.rejects(answers(port), "nothing listens on the port");
  },
);
