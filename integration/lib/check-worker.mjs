// The examples whose models are programs, against the worker protocol.
import { fileURLToPath } from "node:url";
import { checkWorker } from "../../packages/sheaf/dist/node/index.js";

/** What `sheaf check-worker COMMAND` finds in the folder of an example, one promise after the other. */
export const checksOf = (example, command, ...args) =>
  checkWorker({ command, args, cwd: fileURLToPath(new URL(`../../examples/${example}`, import.meta.url)) });
