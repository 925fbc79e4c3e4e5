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
