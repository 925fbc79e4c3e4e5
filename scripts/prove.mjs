// `npm run prove -- NAME`: one of the long proofs, or without a name all of them but those of `npm run test:release`: hours.
import { isForReleases, namesIn, runAll, runNamed } from "./lib/named.mjs";

const [name, ...parameters] = process.argv.slice(2);
process.exitCode =
  name === undefined
    ? runAll("prove", namesIn("prove").filter((proof) => !isForReleases("prove", proof))) // prettier-ignore
    : runNamed("prove", [name, ...parameters]);
