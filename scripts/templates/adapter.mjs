const manifest = "packages/sheaf/package.json";

/** An adapter of the library: `npm run new -- adapter sqs` makes the entry point `sheaf/adapters/sqs`. */
export function adapter({ name, camel, pascal }) {
  const source = `packages/sheaf/src/adapters/${name}.ts`;
  const test = `packages/sheaf/test/adapters/${name}.test.ts`;
  const page = `docs/guide/${name}.md`;
  return {
    created: {
      [source]: `import type { Batcher } from "../core/contract/batcher.ts";
import { createBatcher } from "../core/create-batcher.ts";
import type { BatcherOptions } from "../core/contract/options.ts";

/** What is used of the client, by its shape: the client itself is never a dependency. */
export interface ${pascal}Client<In, Out> {
  /** Takes a batch; gives one result for each item, in their order. */
  send(items: readonly In[]): Promise<readonly Out[]>;
}

/** @see ${camel} */
export type ${pascal}Options<In, Out> = Pick<
  BatcherOptions<In, Out>,
  "maxBatchSize" | "maxWaitMs" | "concurrency" | "maxQueueSize" | "timeoutMs" | "clock" | "name"
>;

/**
 * Calls that share requests of a client: say what the service takes in a request, and what becomes of its errors.
 * @throws {TypeError | RangeError} a wrong option, with what it got.
 */
export function ${camel}<In, Out>(client: ${pascal}Client<In, Out>, options: ${pascal}Options<In, Out> = {}): Batcher<In, Out> {
  const run = async (items: In[]): Promise<Out[]> => {
    await client.send(items);
    // One result for each item, in their order; an Error in a place fails that item's caller only.
    return [];
  };
  return createBatcher(run, { name: "${name}", ...options });
}
`,
      [test]: `import assert from "node:assert/strict";
import { test } from "node:test";
import { ${camel} } from "../../dist/adapters/${name}.js";

test("calls at the same time share a request, and each gets its own result", async () => {
  const requests: (readonly string[])[] = [];
  const send = async (items: readonly string[]): Promise<number[]> => {
    requests.push(items);
    return items.map((item) => item.length);
  };
  const call = ${camel}({ send });
  assert.deepEqual(await Promise.all(["a", "bb", "ccc"].map((item) => call(item))), [1, 2, 3]);
  assert.deepEqual(requests, [["a", "bb", "ccc"]]);
});

test("an unknown option is refused with the one that was meant", () => {
  const client = { send: async () => [] };
  assert.throws(() => ${camel}(client, { maxBatch: 1 } as never), /unknown option maxBatch; did you mean maxBatchSize\\?/);
});
`,
      [page]: `# ${pascal}

Say who needs this, and show the code before and after.

<!-- ts: declare const client: import("sheaf/adapters/${name}").${pascal}Client<string, number>; -->

\`\`\`ts
import { ${camel} } from "sheaf/adapters/${name}";

const send = ${camel}(client);
console.log(await Promise.all(["a", "b"].map((item) => send(item)))); // one request
\`\`\`

| option | default | meaning |
| ------ | ------- | ------- |

The other options are those of [createBatcher](../reference/options.md).
`,
    },
    changed: {
      [manifest]: (text) => {
        const json = JSON.parse(text);
        const built = (folder) => ({
          types: `./${folder}/adapters/${name}.d.ts`,
          default: `./${folder}/adapters/${name}.js`,
        });
        const target = { import: built("dist"), require: built("cjs") };
        json.exports = withEntry(json.exports, `./adapters/${name}`, target, (key) => key.startsWith("./adapters/"));
        return JSON.stringify(json);
      },
      "packages/sheaf/README.md": (text) => {
        const lines = text.split("\n");
        const last = lines.findLastIndex((line) => line.startsWith("| `sheaf/adapters/"));
        return lines.toSpliced(last + 1, 0, `| \`sheaf/adapters/${name}\` | say what it batches |`).join("\n");
      },
      "docs/guide/README.md": (text) =>
        text.replace(/\| many processes that call one embeddings API .*\n/, `| say what a reader has | [${pascal}](${name}.md) |\n$&`), // prettier-ignore
    },
    next: [
      `Give ${pascal}Client in ${source} the methods that the client has, and write what a batch does with them.`,
      `Test in ${test} every way in which a request can fail: npm test -- adapters/${name}`,
      "node scripts/record.mjs surface records what the entry point exports: read the diff.",
      `Begin ${page} with the user's code before and after, and say what becomes of errors.`,
      `Test the real client against the real service in integration/${name}.test.mjs.`,
    ],
  };
}

/** An object with one more entry, in the order of the keys like it; those before and after stay. */
function withEntry(object, key, value, isLike) {
  const entries = Object.entries(object);
  const after = entries.findLastIndex(([other]) => isLike(other) && other < key);
  const first = entries.findIndex(([other]) => isLike(other));
  return Object.fromEntries(entries.toSpliced(after < 0 ? first : after + 1, 0, [key, value]));
}
