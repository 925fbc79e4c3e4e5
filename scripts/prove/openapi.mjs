/**
 * `npm run prove -- openapi [--examples 500] [--model use-lite] [--seed 1]`: schemathesis (PyPI) asks every operation of
 * /openapi.json in all its phases, right and wrong, and checks each answer. Ten minutes. What it would report although the
 * server means it stands in test/integration/schemathesis.toml, with the reason.
 */
import { parseArgs } from "node:util";
import { schemathesis } from "../../test/integration/lib/schemathesis.mjs";

const { values } = parseArgs({
  options: {
    examples: { type: "string", default: "500" },
    model: { type: "string", default: "use-lite" },
    seed: { type: "string", default: "1" },
  },
});
const { examples, model, seed } = values;
const ends = [];
const t = { after: (end) => ends.push(end) };
try {
  const { status } = await schemathesis(t, { examples, model, seed, show: (text) => process.stdout.write(text) });
  process.exitCode = status === 0 ? 0 : 1;
} finally {
  for (const end of ends) await end();
}
