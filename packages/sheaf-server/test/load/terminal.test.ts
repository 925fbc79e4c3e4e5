import assert from "node:assert/strict";
import { test } from "node:test";
import { figures, progressOn, shownMs, textTable } from "../../dist/shared/terminal.js";

test("figures have three digits, no exponent, and their unit", () => {
  assert.deepEqual([0, 0.01234, 1.005, 12.34, 123.4, 12345.6].map(figures), [
    "0",
    "0.0123",
    "1.01",
    "12.3",
    "123",
    "12,346",
  ]);
  assert.deepEqual([0.05, 0.5, 1234, 12_340].map(shownMs), ["50 µs", "0.5 ms", "1,234 ms", "12.3 s"]);
});

test("a table aligns text to the left and figures to the right", () => {
  const rows = [
    ["name", "ms"],
    ["auto", "1.5"],
    ["unbatched", "120"],
  ];
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
  assert.ok(
    drawn(true)
      .split("\n")[0]!
      .split("\r")
      .every((line) => line.length < 70),
  );
});
