/**
 * `npm run bench -- cores [--cores 2] [--neighbours 0]`: the default policy on a machine whose cores HTTP and runs share, on a
 * virtual clock: with what the process says about its cores, and without it. Latency in ms, CPU in ms a request.
 */
import { parseArgs } from "node:util";
import { auto } from "sheaf";
import { serveOnSharedCores } from "./lib/shared-machine.mjs";

const { values } = parseArgs({
  options: { cores: { type: "string", default: "2" }, neighbours: { type: "string", default: "0" } },
});
const machine = { cores: Number(values.cores), neighbours: Number(values.neighbours) };
const contenders = {
  auto: () => ({ policy: auto() }),
  "auto, not told": () => ({ policy: auto(), hasGauge: false }),
};
const loads = [
  ...[100, 300, 600, 1000, 1500, 2000, 2500, 3000].map((ratePerS) => [`${ratePerS}/s`, { ratePerS }]),
  ...[1, 4, 64].map((callers) => [`${callers} callers`, { callers }]),
];
for (const [load, options] of loads)
  for (const [name, policyOf] of Object.entries(contenders)) {
    const { meanMs, p50Ms, p99Ms, cpuMs, size, perS } = await serveOnSharedCores({
      ...machine,
      ...options,
      ...policyOf(),
    });
    console.log(
      `${load.padEnd(11)} ${name.padEnd(15)} mean ${meanMs.toFixed(2)}, p50 ${p50Ms.toFixed(2)}, p99 ${p99Ms.toFixed(2)}, CPU ${cpuMs.toFixed(3)}, ` +
        `batch ${size.toFixed(2)}, ${perS.toFixed(0)}/s`,
    );
  }
