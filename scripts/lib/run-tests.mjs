import { relative } from "node:path";
import { run } from "node:test";
import { root } from "./files.mjs";
import reporter from "./reporter.mjs";
import { commandOf, testTimeoutMs, testsAtOnce } from "./suites.mjs";

/** More unsteady files than these fail the run. */
const mostUnsteady = 2;

/**
 * Runs the test files and returns whether they pass. A file of e2e, integration or release that fails runs once more, alone,
 * after the others: the machine may have been too busy. If it passes then, the line before the runner's closing ones calls it
 * unsteady. A wrong, lost or doubled result is no machine's fault, and fails at once: `assertResult` in test/support/result.mjs.
 */
export async function runTests(files) {
  // With real parts they wait half of the time: for sockets, processes and pauses.
  const hasParts = files.some((file) => commandOf(file) !== "test");
  const failed = await runOnce(files, { concurrency: hasParts ? 2 * testsAtOnce : testsAtOnce });
  const again = [...failed.keys()];
  if (again.length === 0) return true;
  if (
    again.length > mostUnsteady ||
    !again.every((file) => files.includes(file) && mayRunAgain(file, failed.get(file)))
  )
    return false;
  const lines = again.map(
    (file) => `unsteady: ${relative(root, file)}: ${failed.get(file)[0].message.split("\n", 1)[0]}`,
  );
  console.log(`\nOnce more, alone: ${again.map((file) => relative(root, file)).join(", ")}\n`);
  return (await runOnce(again, { concurrency: 1, lines })).size === 0;
}

function mayRunAgain(file, errors) {
  return (
    ["e2e", "integration", "release"].includes(commandOf(file)) && errors.every(({ code }) => code !== "WRONG_RESULT")
  );
}

/** The errors of each file that failed. */
async function runOnce(files, { concurrency, lines = [] }) {
  const failed = new Map();
  const events = run({ files, concurrency, timeout: testTimeoutMs });
  for await (const text of reporter(events, { files, failed, lines })) process.stdout.write(text);
  return failed;
}
