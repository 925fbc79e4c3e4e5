/**
 * `npm run prove -- dockerfile`: runs the Dockerfile's steps where no Docker engine runs. Every stage is a folder in a
 * temporary one; COPY takes what git holds less .dockerignore, RUN runs in the stage's folder, and the last stage's CMD
 * serves as another user until its HEALTHCHECK passes and a real embedding comes back. It shows that the steps work, not
 * that the base image is there: the Node and the Linux are this machine's.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { copyOf, envOf, isIgnored, parseDockerfile } from "../scripts/lib/dockerfile.mjs";
import { root } from "../scripts/lib/files.mjs";
import { freePort, until } from "../scripts/lib/serving.mjs";

const temporary = mkdtempSync(join(tmpdir(), "sheaf-image-"));
chmodSync(temporary, 0o755);
process.on("exit", () => rmSync(temporary, { recursive: true, force: true }));

const stages = parseDockerfile(readFileSync(`${root}/Dockerfile`, "utf8"));
const context = copyContext();
const environment = { PATH: process.env.PATH, HOME: process.env.HOME };
for (const [index, stage] of stages.entries()) build(stage, join(temporary, `stage-${index}`));
await serve(stages.at(-1));
console.log("The Dockerfile's steps work.");

/** The build context: tracked and new files, less .dockerignore. */
function copyContext() {
  const folder = join(temporary, "context");
  const ignore = readFileSync(`${root}/.dockerignore`, "utf8");
  const list = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  for (const path of list.trim().split("\n")) {
    if (isIgnored(path, ignore) || !existsSync(join(root, path))) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(root, path), join(folder, path));
  }
  return folder;
}

function build(stage, folder) {
  Object.assign(stage, { folder, workdir: folder, env: {}, user: "root" });
  mkdirSync(folder);
  for (const { instruction, text } of stage.steps) {
    if (instruction === "WORKDIR") mkdirSync((stage.workdir = join(folder, text)), { recursive: true });
    else if (instruction === "ENV") Object.assign(stage.env, envOf(text));
    else if (instruction === "USER") stage.user = text;
    else if (instruction === "COPY") copy(stage, copyOf(text));
    else if (instruction === "RUN") run(stage, text);
    else if (instruction === "HEALTHCHECK")
      stage.healthCheck = JSON.parse(text.slice(text.indexOf("CMD") + "CMD".length));
    else if (instruction === "CMD") stage.command = JSON.parse(text);
  }
}

function copy(stage, { from, sources, target }) {
  const base = from === undefined ? context : stages.find(({ name }) => name === from).folder;
  for (const source of sources) {
    const path = join(base, source);
    assert.ok(existsSync(path), `COPY ${source}: it is not in ${from ?? "the build context"}`);
    // Docker copies the content of a folder, and a file into a target that ends in a slash or for one of several.
    const intoFolder = !statSync(path).isDirectory() && (target.endsWith("/") || sources.length > 1);
    const to = join(stage.workdir, target, intoFolder ? source.split("/").at(-1) : "");
    cpSync(path, to, { recursive: true, verbatimSymlinks: true });
  }
}

function run(stage, command) {
  const started = performance.now();
  execFileSync("sh", ["-c", command], {
    cwd: stage.workdir,
    env: { ...environment, ...stage.env },
    stdio: ["ignore", "ignore", "inherit"],
  });
  console.log(`RUN ${command} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
}

async function serve({ workdir, env, command, healthCheck, user }) {
  assert.notEqual(user, "root", "the image must not serve as root");
  const port = await freePort();
  // The image's user has the number 1000 too, and owns nothing here.
  const options = {
    cwd: workdir,
    env: { PATH: environment.PATH, ...env, PORT: String(port) },
    ...(process.getuid() === 0 && { uid: 1000, gid: 1000 }),
  };
  const server = spawn(command[0], command.slice(1), { ...options, stdio: ["ignore", "ignore", "inherit"] });
  const exited = new Promise((resolve) => server.once("exit", (code, signal) => resolve(code ?? signal)));
  try {
    await until(() => isHealthy(healthCheck, options), exited);
    const url = `http://127.0.0.1:${port}`;
    await until(async () => (await fetch(`${url}/readyz`)).ok, exited);
    const response = await fetch(`${url}/v1/embeddings`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "use-lite", input: "The cat sits outside" }),
    });
    const { data } = await response.json();
    assert.equal(data[0].embedding.length, 512);
    console.log(`CMD ${command.join(" ")}: healthy, ready, one embedding of 512 numbers`);
  } finally {
    server.kill("SIGTERM");
  }
  assert.equal(await exited, 0, "SIGTERM must end the server with 0");
}

function isHealthy([command, ...parameters], options) {
  return new Promise((resolve) => {
    spawn(command, parameters, { ...options, stdio: "ignore" }).once("exit", (code) => resolve(code === 0));
  });
}
