import assert from "node:assert/strict";
import { test } from "node:test";
import { masked } from "../../dist/shared/masked.js";
import { figures, progressOn, shownMs, textTable, shownCommand } from "../../dist/shared/terminal.js";

test("figures have three digits, no exponent, and their unit", () => {
  assert.equal([0, 0.01234, 1.005, 12.34, 123.4, 12345.6].map(figures).join(" "), "0 0.0123 1.01 12.3 123 12,346");
  assert.deepEqual([0.05, 0.5, 1234, 12_340].map(shownMs), ["50 µs", "0.5 ms", "1,234 ms", "12.3 s"]);
});

test("a table aligns text to the left and figures to the right", () => {
  const rows = [["name", "ms"], ["auto", "1.5"], ["unbatched", "120"]]; // prettier-ignore
  assert.equal(textTable(rows), "name        ms\nauto       1.5\nunbatched  120");
});

test("progress is a bar that redraws its line on a terminal, and a line a step elsewhere", () => {
  const drawn = (isTTY: boolean): string => {
    let text = "";
    const progress = progressOn({ write: (part) => (text += part), isTTY, columns: 60 });
    progress.start("steady");
    progress.update(0.5, "3 open");
    progress.end("p50 2 ms");
    return text;
  };
  assert.equal(drawn(false), "steady …\nsteady: p50 2 ms\n");
  assert.ok(drawn(true).includes(`\r\x1b[K${"█".repeat(12)}${"░".repeat(12)} steady 3 open`));
  assert.doesNotMatch(drawn(true).split("\n")[0]!, /[^\r]{70}/);
});

test("a command, a URL and an address are shown without their secrets, wherever these stand", () => {
  const headers = [
    "authorization: Bearer s3cret",
    "X-Api-Key: s3cret",
    "x-unknown: s3cret",
    "content-type: text/plain",
  ];
  const words = [
    "http://me:s3cret@host:8000/infer?api-key=s3cret&v=1#x",
    ...headers.flatMap((header) => ["--header", header]),
    ..."--header=cookie:s3cret --upstream-api-key s3cret --nats-password=s3cret --api-keys-file keys.json".split(" "),
    "--nats-url=nats://me:s3cret@one:4222,tls://s3cret@two:4222",
  ];
  const shown = shownCommand("bench", words);
  assert.doesNotMatch(shown, /s3cret|me:/);
  const kept = [
    "host:8000/infer",
    "v=1#x",
    "authorization: …",
    "x-unknown: …",
    "content-type: text/plain",
    "keys.json",
  ];
  for (const word of [...kept, "one:4222", "two:4222"]) assert.ok(shown.includes(word), `${word} in ${shown}`);
  assert.equal(masked("nats://host:4222"), "nats://host:4222");
});
