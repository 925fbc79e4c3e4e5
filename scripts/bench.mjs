// `npm run bench -- NAME`: measures; every published figure comes from here.
import { runNamed } from "./lib/named.mjs";

process.exitCode = runNamed("bench", process.argv.slice(2));
