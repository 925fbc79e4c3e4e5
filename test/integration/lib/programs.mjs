import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { pythonWithClients, tokenizers, venv } from "./python.mjs";

const folder = fileURLToPath(new URL("../clients/", import.meta.url));

/**
 * Runs a program of clients/ with `given` as its input; resolves with what it printed. It has ten minutes: on a busy machine the
 * imports of five Python clients alone take two.
 */
export async function runProgram([command, ...words], given, env = {}) {
  const child = spawn(command, words, { cwd: folder, env: { ...process.env, ...env }, timeout: 600_000 });
  child.stdin.on("error", () => undefined); // one that ended early says why on stderr
  child.stdin.end(JSON.stringify(given));
  const [output, errors, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  if (code !== 0) throw new Error(`${command} ${words.join(" ")} ended with ${code ?? signal}: ${errors.slice(-3000)}`);
  return JSON.parse(output);
}

/** The same for a Python program; nothing in it may look for the internet. */
export function runPython(script, urls, given) {
  const python = pythonWithClients();
  const env = {
    HAYSTACK_TELEMETRY_ENABLED: "False",
    LITELLM_LOCAL_MODEL_COST_MAP: "True",
    PYTHONPYCACHEPREFIX: `${venv}/pycache`,
    TIKTOKEN_CACHE_DIR: tokenizers(),
  };
  return runProgram([python, script, ...urls], given, env);
}
