// schemathesis makes requests from /openapi.json, right and wrong ones, and holds the server to what it says there.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { pythonWithClients } from "./python.mjs";
import { serveWithGrpc } from "./serving.mjs";

const pathOf = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const config = pathOf("integration/schemathesis.toml");
const key = "schemathesis";

/** A folder of models of each kind of input: JSON, text, numbers of one tensor and of several. */
function folderOfModels(t) {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-schemathesis-models-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(
    join(folder, "echo.mjs"),
    "export const sample = (i) => [i]; export default { run: (items) => items };",
  );
  for (const name of ["words", "picture", "named"])
    cpSync(pathOf(`packages/sheaf-server/test/e2e/fixtures/${name}.py`), join(folder, `${name}.py`));
  return folder;
}

/**
 * Every operation of a server with a key, gRPC, this model and a folder of models, in every phase. `show` gets the output
 * as it comes.
 * @returns the exit status (0: no failure but those that schemathesis.toml lists) and the whole output.
 */
export async function schemathesis(t, { model = "use-lite", examples, seed, show = () => {} }) {
  const { url } = await serveWithGrpc(t, model, folderOfModels(t), "--api-key", key);
  const command = join(dirname(pythonWithClients()), "schemathesis");
  const run = [
    "run",
    `${url}/openapi.json`,
    "--header",
    `Authorization: Bearer ${key}`,
    "--max-examples",
    `${examples}`,
  ];
  const how = ["--seed", `${seed}`, "--continue-on-failure", "--no-color", "--generation-database", "none"];
  // It keeps what it found in the folder that it runs in.
  const cwd = mkdtempSync(join(tmpdir(), "sheaf-schemathesis-"));
  t.after(() => rmSync(cwd, { recursive: true, force: true }));
  const words = ["--config-file", config, ...run, ...how];
  const child = spawn(command, words, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
      show(text);
    });
  const [status] = await once(child, "close");
  return { status, output };
}
