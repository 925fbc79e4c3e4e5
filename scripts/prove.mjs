// `npm run prove -- NAME`: the long proofs that do not run on every change.
import { runNamed } from "./lib/named.mjs";

process.exitCode = runNamed("prove", process.argv.slice(2));
