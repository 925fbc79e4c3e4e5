const plugin = "packages/sheaf-server/src/server/plugin.ts";
const page = "docs/reference/metrics.md";

/** A metric of every model of the server: `npm run new -- metric open-files` makes the gauge `sheaf_open_files`. */
export function metric({ name, camel }) {
  const source = `packages/sheaf-server/src/server/observe/${name}-metric.ts`;
  const test = `packages/sheaf-server/test/server/${name}-metric.test.ts`;
  const metricName = `sheaf_${name.replaceAll("-", "_")}`;
  return {
    created: {
      [source]: `import type { MetricFamily } from "sheaf/internal/metrics";
import type { Models } from "../models/models.ts";
import { gauge } from "../../observe/family.ts";

/** Say what it counts, and when it changes. */
export function ${camel}Family(models: Models): MetricFamily {
  return gauge(
    "${metricName}",
    "Say what it counts.",
    // A model has a name, its settings, its statistics and its batcher's stats().
    models.all.map(({ name }) => ({ labels: { batcher: name }, value: 0 })),
  );
}
`,
      [test]: `import assert from "node:assert/strict";
import { test } from "node:test";
import { doubling, serving } from "./serving.js";

test("${metricName} changes with a request", async (t) => {
  const { get, post } = await serving(t, [doubling()]);
  await post("/infer", [1, 2, 3]);
  const { text } = await get("/metrics");
  assert.ok(text.split("\\n").includes('${metricName}{batcher="double"} 1'), text);
});
`,
    },
    changed: {
      [plugin]: (text) =>
        text
          .replace(
            /(?=import \{ workerFamilies \} from)/,
            `import { ${camel}Family } from "./observe/${name}-metric.ts";\n`,
          ) // prettier-ignore
          .replace(/( +)\.\.\.workerFamilies\(models\),\n/, `$&$1${camel}Family(models),\n`),
      [page]: (text) =>
        text.replace(/\| `sheaf_workers` .*\n/, `$&| \`${metricName}\` | gauge | Say what it counts. |\n`),
    },
    next: [
      `Say in ${test} when the value changes: npm test -- server/${name}-metric`,
      `Read the value in ${source}; a count that only grows is a counter, and its name ends in _total.`,
      `Describe it in ${page}; npm test -- documentation compares names and types both ways.`,
      "An operator who should act on it needs a panel or a rule in deploy/.",
      "node scripts/record.mjs surface records the new public names: read the diff.",
    ],
  };
}
