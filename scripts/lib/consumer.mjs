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

/** A user's CommonJS module, and the options that such a project has. */
export const commonJsUse = `import { createBatcher, type Batcher } from "sheaf";
import { openaiEmbeddings } from "sheaf/adapters/openai";
import { manualClock } from "sheaf/testing";
const double: Batcher<number, number> = createBatcher((numbers: number[]) => numbers.map((n) => 2 * n));
void [double, openaiEmbeddings, manualClock];
`;
export const commonJsOptions = [{ module: "nodenext" }, { module: "node16" }];
/** As older projects and Nest's have it; TypeScript 7 no longer takes it. */
export const node10Options = { module: "commonjs", moduleResolution: "node10" };

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
