/** A policy of the library, by its name in code: `npm run new -- policy even-seconds` makes `evenSeconds()`. */
export function policy({ name, camel }) {
  const source = `packages/sheaf/src/policies/${name}.ts`;
  const test = `packages/sheaf/test/policies/${name}.test.ts`;
  return {
    created: {
      [source]: `import type { Policy } from "./policy.ts";

/** Sends … : say when, and where that is better than \`auto()\`. */
export function ${camel}(): Policy {
  return {
    name: "${name}",
    // { run: k } sends up to k items now; { askAgainAtMs } asks again then; "wait" asks again when something changes.
    decide: () => "wait",
  };
}
`,
      [test]: `import assert from "node:assert/strict";
import { test } from "node:test";
import { ${camel} } from "../../dist/policies/${name}.js";
import { view } from "./view.js";

test("${camel} sends all that waits when …", () => {
  assert.deepEqual(${camel}().decide(view({ nowMs: 0, waiting: 3 })), { run: 3 });
});
`,
    },
    changed: {
      "packages/sheaf/src/index.ts": (text) => `${text}export { ${camel} } from "./policies/${name}.ts";\n`,
      "docs/reference/policies.md": (text) =>
        text.replace(
          "\n## Your own\n",
          `\n## \`${camel}()\`\n\nSay when it sends, and when to use it.\n\n## Your own\n`,
        ),
    },
    next: [
      `Write the decision in ${source}; options are an interface with the policy's name, as in fixed-window.ts.`,
      `Say in ${test} what it does, as a table of views: npm test -- policies/${name}`,
      "Describe it in docs/reference/policies.md, with a table of its options.",
      "Look at it beside the others: add it to `others` in bench/scheduling.mjs, npm run bench -- scheduling --items 4000",
      "To have the server run it too: a row in packages/sheaf-server/src/shared/strategies.ts, and its name in docs/reference/environment.md and commands.md.",
      "node scripts/record.mjs surface records the new public names: read the diff.",
    ],
  };
}
