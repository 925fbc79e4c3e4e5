/**
 * `sheaf tune` where the answer is known, and on the built-in models: `npm run bench -- tune`. About two minutes.
 * A spin of 1 ms an item must end with "do not batch"; a sleep of 10 + 0.3 n ms must be found within 5 %.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { machine } from "./lib/machine.mjs";

const sheaf = fileURLToPath(new URL("../packages/sheaf-server/dist/cli/main.js", import.meta.url));
const worker = (name) => fileURLToPath(new URL(`tune-workers/${name}-worker.mjs`, import.meta.url));

function tune(title, ...args) {
  console.log(`\n## ${title}`);
  const { stdout, stderr, status } = spawnSync(process.execPath, [sheaf, "tune", ...args, "--max-time", "15s"], {
    encoding: "utf8",
    timeout: 120_000,
  });
  console.log(`${stdout}exit ${status}${status === 0 || status === 3 ? "" : `\n${stderr}`}`);
  return stdout;
}

console.log(machine());
tune("mlp", "mlp");
tune("use-lite, texts of 5 words", "use-lite", "--item", "{{words 5}}");
tune("use-lite, texts of 60 words", "use-lite", "--item", "{{words 60}}");
tune("1 ms an item and nothing a batch: do not batch, exit 3", worker("per-item"));
const line = tune("10 + 0.3 n ms", worker("fixed-and-per-item"), "--rate", "500", "--budget", "60ms");
const [, fixed, perItem, unit] = /s\(n\) = ([\d.]+) ms \+ ([\d.]+) (ms|µs) · n/.exec(line) ?? [];
const off = (found, known) => `${(100 * (found / known - 1)).toFixed(1)} %`;
console.log(
  `\nfixed part off by ${off(fixed, 10)}, per item by ${off(unit === "µs" ? perItem / 1000 : perItem, 0.3)} (promised: within 5 %)`,
);
