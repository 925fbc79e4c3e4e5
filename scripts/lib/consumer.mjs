/** A user's TypeScript that touches every public entry point of `sheaf` and infers what the documents promise. */
export function useOfTypes(specifiers) {
  const imports = specifiers.map((specifier, index) => `import * as point${index} from "${specifier}";`);
  return `${imports.join("\n")}
import { createBatcher, BatcherError, type Batcher, type Policy } from "sheaf";
import { manualClock } from "sheaf/testing";
const embed = createBatcher(async (texts: string[], { signal }) =>
  texts.map((text) => (signal.aborted ? new Error("no") : text.length)),
);
const length: Promise<number> = embed("text");
const lengths: Promise<number[]> = Promise.all(["a", "b"].map(embed));
const same: Batcher<string, number> = embed;
const policy: Policy = { name: "mine", decide: (view) => ({ run: view.waiting }) };
// @ts-expect-error an item of another type
void embed(1);
void [length, lengths, same, policy, manualClock, BatcherError, ${specifiers.map((_, index) => `point${index}`).join(", ")}];
`;
}

/**
 * A user's CommonJS modules, by file name, with the `module` option that each compiles with: what docs/guide/runtimes.md
 * shows. `since` is the first TypeScript that takes it.
 */
export const commonJsUses = {
  "imports.cts": {
    module: "nodenext",
    since: 5.8,
    text: `import { createBatcher, type Batcher } from "sheaf";
const double: Batcher<number, number> = createBatcher((numbers: number[]) => numbers.map((n) => 2 * n));
void double;
`,
  },
  "loads.cts": {
    module: "node16",
    since: 5.2,
    text: `async function main(): Promise<number> {
  const { createBatcher } = await import("sheaf");
  return createBatcher((numbers: number[]) => numbers.map((n) => 2 * n))(21);
}
void main();
`,
  },
  "names-a-type.cts": {
    module: "node16",
    since: 5.3,
    text: `import type { Batcher } from "sheaf" with { "resolution-mode": "import" };
declare const double: Batcher<number, number>;
const result: Promise<number> = double(21);
void result;
`,
  },
};

/** The strictest options a user may have; declarations are checked too, and no runtime's types are there. */
export const strictestOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  skipLibCheck: false,
  types: [],
  target: "es2022",
  module: "nodenext",
  lib: ["es2023", "dom", "esnext.disposable"],
};
