// schemathesis makes requests from /openapi.json, right and wrong ones, and holds the server to what it says there.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeEncoderFolder } from "../../support/encoder-folder.mjs";
import { pythonWithClients } from "./python.mjs";
import { serveWithGrpc } from "./serving.mjs";

const pathOf = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const config = pathOf("test/integration/schemathesis.toml");
const key = "schemathesis";

/** A folder of models of each kind: JSON, text, numbers of one tensor and of several, labels of texts, vectors of tokens. */
function folderOfModels(t) {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-schemathesis-models-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(
    join(folder, "echo.mjs"),
    "export const sample = (i) => [i]; export default { run: (items) => items };",
  );
  for (const name of ["words", "picture", "named"])
    cpSync(pathOf(`packages/sheaf-server/test/e2e/fixtures/${name}.py`), join(folder, `${name}.py`));
  const shape = { layers: 1, width: 16, heads: 2, hidden: 32, vocabulary: 100, maxTokens: 128 };
  writeEncoderFolder(join(folder, "moods"), { ...shape, labels: ["glad", "sad"] });
  writeFileSync(
    join(folder, "tokens.py"),
    `from sheaf_worker import serve
serve(lambda texts: [[[len(t), 0.0], [1.0, 2.0]] for t in texts], inputs="text", outputs="float32[2, 2]", sample=["a", "b"])
`,
  );
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
