/**
 * `npm run prove -- workers`: `sheaf check-worker` on the worker of every example, in Python, scikit-learn, PyTorch and Go. Each
 * of the protocol's promises starts the worker again, two minutes in all.
 */
import { fileURLToPath } from "node:url";
import { machine, table } from "../bench/lib/machine.mjs";
import { checksOf } from "../integration/lib/check-worker.mjs";
import { buildGoIn } from "../integration/lib/go.mjs";
import { pythonWithClients } from "../integration/lib/python.mjs";
import { withTorch } from "../integration/lib/torch.mjs";

const go = fileURLToPath(new URL("../examples/worker-in-go", import.meta.url));
buildGoIn(go, `${go}/dist/worker`);
if (withTorch === undefined) throw new Error("PyTorch is not installed: apt-get install python3-torch");
const workers = [
  ["python", "python3", "model.py"],
  ["python-scikit-learn", pythonWithClients(), "model.py"],
  ["pytorch", withTorch, "model.py"],
  ["worker-in-go", `${go}/dist/worker`],
];

console.log(machine());
const rows = [["example", "promises kept", "broken", "s"]];
for (const [example, ...command] of workers) {
  const startedAtMs = performance.now();
  let [kept, broken] = [0, 0];
  for await (const { name, ok, detail } of checksOf(example, ...command)) {
    if (ok) kept++;
    else broken++;
    if (!ok) console.error(`${example}: FAILED ${name}: ${detail}`);
  }
  rows.push([example, kept, broken, ((performance.now() - startedAtMs) / 1000).toFixed(0)]);
  if (broken > 0) process.exitCode = 1;
}
console.log(table(rows));
