// ONNX Runtime keeps a device id and a cache of telemetry below the home folder, and files in the temporary one.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { post } from "../asking.js";
import { temporaryFolder } from "../folder.js";
import { ready, sheaf } from "./sheaf-process.js";

/** Empty folders for all that a program may write on its own, and what it left there. */
function emptyFolders(t: TestContext): { env: Record<string, string>; written: () => string[] } {
  const base = temporaryFolder(t);
  const names = ["HOME", "XDG_CACHE_HOME", "TMPDIR"];
  const env = Object.fromEntries(names.map((name) => [name, join(base, name)]));
  for (const path of Object.values(env)) mkdirSync(path);
  return {
    env,
    written: () => (readdirSync(base, { recursive: true }) as string[]).filter((path) => !names.includes(path)),
  };
}

async function embeds(url: string): Promise<void> {
  const input = ["The cat sits outside", "A man is playing guitar"];
  const { data } = (await post(`${url}/v1/embeddings`, { model: "use-lite", input })).json;
  assert.deepEqual(
    data.map(({ embedding }: any) => embedding.length),
    [512, 512],
  );
}

for (const isolation of ["thread", "process"])
  test(`a server with ${isolation} workers leaves HOME, XDG_CACHE_HOME and TMPDIR empty`, async (t) => {
    const { env, written } = emptyFolders(t);
    const served = sheaf(t, ["serve", "use-lite", "mlp"], { ...env, PORT: "0", WORKER_ISOLATION: isolation });
    const url = await ready(served);
    await Promise.all([embeds(url), embeds(url)]);
    served.child.kill("SIGTERM");
    assert.equal(await served.ended, 0);
    assert.deepEqual(written(), []);
  });

/** What a program prints that has `sheaf-server` imported, as `library`. */
async function run(source: string, env: Record<string, string>): Promise<string> {
  const cwd = fileURLToPath(new URL("../../", import.meta.url));
  const program = `import("sheaf-server").then(async (library) => { ${source} });`;
  const options = { cwd, env: { PATH: process.env["PATH"] ?? "", ...env } };
  return (await promisify(execFile)(process.execPath, ["-e", program], options)).stdout;
}

test("a program that imports sheaf-server leaves them empty too", async (t) => {
  const { env, written } = emptyFolders(t);
  const source = `
    const { builtinModels, createServer, defaultSettings, workerModel } = library;
    const settings = { ...defaultSettings, port: 0, logLevel: "silent" };
    const server = await createServer({ models: [workerModel(builtinModels.mlp(), settings)], settings });
    await server.ready();
    await server.close();
    console.log("served");`;
  assert.equal(await run(source, env), "served\n");
  assert.deepEqual(written(), []);
});

test("a value of ORT_DISABLE_TELEMETRY that the user has set stays, an empty one too", async () => {
  for (const value of ["0", ""]) {
    const source = "console.log(JSON.stringify(process.env.ORT_DISABLE_TELEMETRY));";
    assert.equal(JSON.parse(await run(source, { ORT_DISABLE_TELEMETRY: value })), value);
  }
});
