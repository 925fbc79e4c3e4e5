import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { crc32 } from "node:zlib";
import { claimFolder, Journal } from "../../dist/internal/journal.js";

const writer = fileURLToPath(new URL("../../test/journal/fixtures/writer.mjs", import.meta.url));

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "sheaf-journal-"));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

async function factsIn<Fact>(path: string): Promise<Fact[]> {
  const facts: Fact[] = [];
  const journal = await Journal.open<Fact>(path, { replay: (fact) => facts.push(fact), facts: () => facts });
  await journal.close();
  return facts;
}

test("after kill -9 at any moment every fact that was said to be written is there, in order, and none is cut short", async (t) => {
  const path = join(folder(t), "journal");
  let told = -1;
  for (const kill of [1, 40, 200, 3, 77]) {
    const child = spawn(process.execPath, [writer, path], { stdio: ["ignore", "pipe", "inherit"] });
    let lines = 0;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.trimEnd().split("\n")) told = Number(line);
      if ((lines += text.split("\n").length - 1) >= kill) child.kill("SIGKILL");
    });
    await once(child, "close");
    const facts = await factsIn<{ n: number; text: string }>(path);
    assert.ok(facts.length > told, `${facts.length} facts, told of ${told}`);
    facts.forEach((fact, n) => assert.deepEqual(fact, { n, text: "x".repeat(n % 300) }));
  }
});

test("a stranger can read it: a line is a CRC-32, a space and JSON; the file is 0600", async (t) => {
  const path = join(folder(t), "journal");
  const journal = await Journal.open<object>(path, { replay: () => {}, facts: () => [] });
  await Promise.all([journal.append({ a: "ä" }), journal.append({ b: 2 }, { c: 3 })]);
  await journal.close();
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  assert.deepEqual(
    lines.map((line) => line.slice(9)),
    ['{"a":"ä"}', '{"b":2}', '{"c":3}'],
  );
  for (const line of lines) assert.equal(Number.parseInt(line.slice(0, 8), 16), crc32(line.slice(9)));
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("the last line is dropped where it is cut or damaged; damage before it is an error that names the line", async (t) => {
  const path = join(folder(t), "journal");
  const journal = await Journal.open<object>(path, { replay: () => {}, facts: () => [] });
  await journal.append({ a: 1 }, { b: 2 });
  await journal.close();
  const whole = readFileSync(path, "utf8");
  for (const torn of ["0000", '00000000 {"c":3}\n', '00000000 {"c', "\0\0\0\0\0\0\0\0\0\0\0"]) {
    appendFileSync(path, torn);
    assert.deepEqual(await factsIn(path), [{ a: 1 }, { b: 2 }]);
    assert.equal(readFileSync(path, "utf8"), whole);
  }
  writeFileSync(path, whole.replace('{"a":1}', '{"a":7}'));
  await assert.rejects(factsIn(path), /journal:1 is damaged/);
});

test("a file that has doubled is compacted to the facts that still hold, and goes on", async (t) => {
  const path = join(folder(t), "journal");
  let last = { n: -1, text: "" };
  const options = { replay: (fact: typeof last) => void (last = fact), facts: () => [last] };
  const journal = await Journal.open<typeof last>(path, options);
  for (let n = 0; n < 300; n++) await journal.append((last = { n, text: "x".repeat(10_000) }));
  await journal.close();
  assert.ok(statSync(path).size < 1_300_000, `${statSync(path).size} bytes`);
  const again = await Journal.open<typeof last>(path, { ...options, replay: (fact) => void (last = fact) });
  await again.close();
  assert.equal(last.n, 299);
});

test("one process owns a folder: a second claim names the first, and a dead owner's folder is free", async (t) => {
  const path = folder(t);
  const claim = await claimFolder(path);
  await assert.rejects(
    claimFolder(path),
    new RegExp(`belongs to process ${process.pid} on ${hostname()} since 2.*for something else`),
  );
  await claim.release();
  await (await claimFolder(path)).release();
  const child = spawn(process.execPath, ["-e", ""]);
  await once(child, "close");
  const owner = { pid: child.pid, host: hostname(), startedAt: "a boot 1", since: "2026-01-01" };
  for (const stale of [owner, { ...owner, pid: process.pid }]) {
    writeFileSync(join(path, "owner.json"), JSON.stringify(stale));
    await (await claimFolder(path)).release();
  }
  writeFileSync(join(path, "owner.json"), '{"pid":1');
  await (await claimFolder(path)).release();
});
