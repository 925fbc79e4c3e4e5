/** A user's TypeScript that touches every public entry point of `sheaf` and infers what the documents promise. */
export function useOfTypes(specifiers) {
  const imports = specifiers.map((specifier, index) => `import * as point${index} from "${specifier}";`);
  return `${imports.join("\n")}
import { createBatcher, BatcherError, type Batcher, type Policy } from "sheaf";
import { manualClock } from "sheaf/tuning";
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
