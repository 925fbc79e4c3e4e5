// The spec reporter, with three additions: a table of the suites' times before the closing lines, a failure for every
// test file that ran no test (node:test calls such a file passed), and the names of what failed as the last lines.
import { spec } from "node:test/reporters";
import { relative } from "node:path";
import { root } from "./files.mjs";
import { filesOf, suiteOf } from "./suites.mjs";

/**
 * `node --test` gives the events alone; run-tests.mjs also its files, lines to show before the closing ones, and a map that gets
 * the errors of each file that failed.
 * @param {AsyncIterable<{ type: string, data: any }>} events
 */
export default async function* reporter(
  events,
  { files = process.argv.slice(1), lines = [], failed = new Map() } = {},
) {
  const reporter = new spec();
  const suites = new Map();
  const empty = new Set(files.flatMap(filesOf));
  const failures = [];
  const names = [];
  let closing = false;
  for await (const event of events) {
    const { type, data } = event;
    if (type === "test:start") names.splice(data.nesting, Infinity, data.name);
    if (type === "test:fail" && data.todo === undefined) {
      failures.push(...failureOf(data, names));
      failed.set(data.file, [...(failed.get(data.file) ?? []), errorOf(data.details)]);
    }
    if (data.nesting === 0 && (type === "test:pass" || type === "test:fail")) count(event, suites, empty);
    // The closing diagnostics belong to no file.
    if (type === "test:diagnostic" && data.file === undefined && !closing) {
      closing = true;
      yield summary(suites, empty) + lines.map((line) => `${line}\n`).join("");
    }
    reporter.write(event);
    yield* written(reporter);
  }
  reporter.end();
  for await (const text of reporter) yield text;
  failures.push(...Array.from(empty, (file) => `${relative(root, file)} ran no test`));
  if (failures.length > 0) yield `\nFailed:\n${failures.map((name) => `  ✖ ${name}\n`).join("")}`;
  if (empty.size > 0) process.exitCode = 1;
  for (const file of empty) failed.set(file, [{ message: "ran no test" }]);
}

const errorOf = ({ error }) => (error.cause instanceof Error ? error.cause : error);

/** File and names of a failed test; nothing for one that failed only because a test inside it did. */
function failureOf({ file, name, nesting, details }, names) {
  if (details.error?.failureType === "subtestsFailed") return [];
  const inside = [...names.slice(0, nesting), name].filter((part) => part !== file);
  return [[relative(root, file), ...inside].join(" › ")];
}

function count({ type, data }, suites, empty) {
  // A file that ran no test is reported as one test with the file's name; so is one that failed before its first.
  if (data.name !== data.file || type === "test:fail") empty.delete(data.file);
  const name = suiteOf(data.file);
  const suite = suites.get(name) ?? { files: new Set(), tests: 0, durationMs: 0 };
  suite.files.add(data.file);
  suite.tests += 1;
  suite.durationMs += data.details.duration_ms;
  suites.set(name, suite);
}

function summary(suites, empty) {
  const rows = [...suites].map(
    ([name, { files, tests, durationMs }]) =>
      `  ${name.padEnd(26)}${String(files.size).padStart(4)} files${String(tests).padStart(6)} tests` +
      `${(durationMs / 1000).toFixed(1).padStart(9)} s\n`,
  );
  const complaints = Array.from(empty, (file) => `✖ ${relative(root, file)} ran no test\n`);
  return `\nSuites (top-level tests, sum of their times):\n${rows.join("")}${complaints.join("")}\n`;
}

function* written(stream) {
  for (let text = stream.read(); text !== null; text = stream.read()) yield text;
}
