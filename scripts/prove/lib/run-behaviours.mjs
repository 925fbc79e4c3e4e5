// `RUNTIME run-behaviours.mjs URL-OF-BEHAVIOURS URL-OF-MODULE`: holds a module of the build to its behaviours, on any
// runtime that has a command line. Prints their outcomes as one JSON array.
import { outcomesOf } from "./behaviours.mjs";

const [behaviours, module] = globalThis.Deno?.args ?? globalThis.process.argv.slice(2);
const { behavioursOf } = await import(behaviours);
console.log(JSON.stringify(await outcomesOf(behavioursOf(await import(module)))));
