// Plays some simulations in this process: SEED COUNT [PATH]. Prints what it played, or the failure and how to replay it.
import fc from "fast-check";
import { scenarios } from "../../../packages/sheaf/dist-test/properties/scenario.js";
import { simulate, Visits } from "../../../packages/sheaf/dist-test/properties/simulate.js";

const [seed, count, path] = process.argv.slice(2);
console.warn = () => {}; // hostile policies and stuck runs cause warnings, rightly

const visits = new Visits();
const property = fc.asyncProperty(scenarios, async (scenario) => visits.add(await simulate(scenario)));
const result = await fc.check(property, { seed: Number(seed), numRuns: Number(count), ...(path ? { path } : {}) });
const { user, system } = process.cpuUsage();
if (result.failed) {
  console.log(fc.stringify(result.counterexample));
  console.log(result.errorInstance?.stack ?? result.errorInstance);
  console.log(`npm run prove -- simulations --seed ${seed} --count ${count} --path ${result.counterexamplePath}`);
  process.exit(1);
}
console.log(JSON.stringify({ played: result.numRuns, cpuMs: (user + system) / 1_000, visits: [...visits.counts] }));
process.exit(0);
