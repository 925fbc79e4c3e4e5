// The Python clients, in a virtual environment beside this folder's node_modules.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { absent } from "../../support/absent.mjs";

const uvVersion = "0.13.8";
const folder = fileURLToPath(new URL("..", import.meta.url));
/** Where they are installed; ignored by git. */
export const venv = `${folder}.venv`;
const requirements = readFileSync(`${folder}requirements.txt`);

/** For `test(name, { skip })`: false where Python can make a virtual environment, else why not. On CI that is a failure. */
export const skipWithoutPython =
  spawnSync("python3", ["-c", "import venv, ensurepip"]).status === 0
    ? false
    : absent("Python cannot make a virtual environment; apt-get install python3-venv");

/**
 * Path of a Python that has the pinned requirements. They are installed on the first call, and again when
 * requirements.txt changes. `npm test` does so before the tests start, because no two files may install at the same time.
 */
export function pythonWithClients() {
  const python = `${venv}/bin/python`;
  const marker = `${venv}/installed`;
  const wanted = createHash("sha256").update(requirements).update(uvVersion).digest("hex");
  if (existsSync(marker) && readFileSync(marker, "utf8") === wanted) return python;
  rmSync(venv, { recursive: true, force: true });
  run("python3", "-m", "venv", venv);
  run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", `uv==${uvVersion}`);
  installPackages("--requirement", `${folder}requirements.txt`);
  writeFileSync(marker, wanted);
  return python;
}

/** OpenAI's token tables, which tiktoken would download: litellm carries them under the names that tiktoken looks for. */
export function tokenizers() {
  const [python] = readdirSync(`${venv}/lib`);
  return `${venv}/lib/${python}/site-packages/litellm/litellm_core_utils/tokenizers`;
}

/** Installs more into the virtual environment, in uv's words. */
export function installPackages(...words) {
  run(`${venv}/bin/uv`, "pip", "install", "--quiet", "--system-certs", "--python", `${venv}/bin/python`, ...words);
}

function run(command, ...words) {
  const { status, stderr, error } = spawnSync(command, words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${words.join(" ")} failed: ${error?.message ?? stderr}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url) && skipWithoutPython === false) pythonWithClients();
