// Clients that keep their connections, with many calls in flight when the server gets SIGTERM.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { buildGo, skipWithoutGo } from "./lib/go.mjs";
import { runProgram, runPython } from "./lib/programs.mjs";
import { skipWithoutPython } from "./lib/python.mjs";
import { serveWithRequestLog } from "./lib/serving.mjs";
import { untilTrue } from "./lib/until.mjs";

const callers = 64;

/** Each takes { url, callers, pauseMs }, and resolves with how every call ended, by its id. */
const clients = {
  "fetch of Node": { run: (given) => runProgram([process.execPath, "shutdown.mjs"], given) },
  "requests for Python": { run: (given) => runPython("shutdown_client.py", [], given), skip: skipWithoutPython },
  "net/http of Go": { run: (given, t) => runProgram([buildGo(t, "shutdown-go")], given), skip: skipWithoutGo },
};

for (const [name, { run, skip = false }] of Object.entries(clients)) {
  test(`${name}: at SIGTERM every accepted call is answered, and no kept connection breaks`, { skip }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "sheaf-slow-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const slow = join(folder, "slow.mjs");
    writeFileSync(slow, "export default { run: (items) => new Promise((r) => setTimeout(r, 20, items)) };");
    const { url, child, ended } = await serveWithRequestLog(t, slow);
    let answered = 0;
    child.stdout.on("data", (text) => (answered += text.split("\nanswered ").length - 1));
    const outcomes = run({ url, callers, pauseMs: 40 }, t);
    await Promise.race([outcomes, untilTrue(() => answered >= 5 * callers)]);
    child.kill("SIGTERM");
    const calls = Object.entries(await outcomes);
    const { code, output } = await ended;
    assert.equal(code, 0, output);

    const read = new Set([...output.matchAll(/^read (\S+)$/gm)].map(([, id]) => id));
    const ends = {};
    for (const [id, outcome] of calls) {
      const end = /^\d+$/.test(outcome) || !read.has(id) ? outcome : `${outcome} after it was read`;
      ends[end] = (ends[end] ?? 0) + 1;
    }
    t.diagnostic(JSON.stringify(ends));
    assert.equal(ends.refused, callers, "each caller ends when its connection is refused");
    assert.ok(ends[200] >= 5 * callers && ends[503] > 0);
    // A reset by the kernel, where a connection reached it while the port was closed and no process had seen it.
    const expected = /^(200|503|refused|.*(ECONNRESET|reset by peer)(?!.*after it was read).*)$/;
    const others = Object.keys(ends).filter((end) => !expected.test(end));
    assert.deepEqual(others, []);
  });
}
