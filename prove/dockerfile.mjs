/**
 * `npm run prove -- dockerfile [--image cpu|gpu]`: runs the steps of Dockerfile, and of Dockerfile.gpu, where no Docker
 * engine runs. Every stage is a folder in a temporary one; COPY takes what git holds less .dockerignore, RUN runs in the
 * stage's folder (steps that an earlier image has run are taken from it, as an engine's cache would), and the last stage's
 * CMD serves as another user until its HEALTHCHECK passes and a real embedding comes back. It shows that the steps work,
 * not that the base images are there: the Node is the images' version from npm, the Linux this machine's. A step that would change this machine
 * (apt-get) is left out with its stage, and said: `npm run prove -- images` has an engine run it. Of the GPU image it shows
 * that the server refuses to start where there is no CUDA, and says why, and that it serves on the CPU where that is allowed.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { copyOf, envOf, isIgnored, parseDockerfile } from "../scripts/lib/dockerfile.mjs";
import { root } from "../scripts/lib/files.mjs";
import { freePort, until } from "../test/support/serving.mjs";
import { imageNode } from "./lib/runtimes.mjs";

const temporary = mkdtempSync(join(tmpdir(), "sheaf-image-"));
chmodSync(temporary, 0o755);
process.on("exit", () => rmSync(temporary, { recursive: true, force: true }));

const { values } = parseArgs({ options: { image: { type: "string" } } });
const files = { cpu: "Dockerfile", gpu: "Dockerfile.gpu" };
const images = values.image === undefined ? Object.keys(files) : [values.image];
for (const image of images) assert.ok(Object.hasOwn(files, image), `--image must be cpu or gpu, got ${image}`);

const context = copyContext();
const stagesOf = new Map(
  images.map((image) => [image, parseDockerfile(readFileSync(`${root}/${files[image]}`, "utf8"))]),
);
const { name: nodeName, path: nodePath } = imageNode(join(temporary, "node"), stagesOf.values().next().value[0].from);
console.log(`${nodeName}, as in the base image`);
const environment = {
  PATH: `${dirname(nodePath)}${delimiter}${process.env.PATH}`,
  HOME: process.env.HOME,
  // Node's own list lacks a certificate that only this machine trusts: npm would try everything three times.
  NODE_USE_SYSTEM_CA: "1",
};
const built = [];
for (const [image, stages] of stagesOf) {
  console.log(`${files[image]}:`);
  for (const [index, stage] of stages.entries()) {
    // Without its apt-get an earlier stage has nothing to run; the last one still serves.
    stage.isLeftOut = stage !== stages.at(-1) && stage.steps.some(changesTheSystem);
    if (stage.isLeftOut) console.log(`NOT RUN: stage ${stage.name}, which changes the system`);
    else build(stage, stages, join(temporary, `${image}-${index}`));
  }
  const last = stages.at(-1);
  const [size] = execFileSync("du", ["-s", "-m", last.folder], { encoding: "utf8" }).split("\t");
  console.log(`The last stage adds ${size} MB to its base image.`);
  if (image === "cpu") await serve(last, {});
  else {
    await refuse(last);
    await serve(last, { INFERENCE_DEVICE: "cuda:0,cpu" });
  }
}
console.log(`The steps of ${images.map((image) => files[image]).join(" and ")} work.`);

function changesTheSystem({ instruction, text }) {
  return instruction === "RUN" && /\b(?:apt-get|ldconfig)\b/.test(text);
}

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

function build(stage, stages, folder) {
  const steps = JSON.stringify([stage.from, stage.steps]);
  const same = built.find((other) => other.steps === steps);
  if (same !== undefined) {
    Object.assign(stage, same.stage, { name: stage.name });
    console.log(`(stage ${stage.name} is the other image's)`);
    return;
  }
  built.push({ steps, stage });
  Object.assign(stage, { folder, workdir: folder, env: {}, user: "root" });
  mkdirSync(folder);
  for (const { instruction, text } of stage.steps) {
    if (instruction === "WORKDIR") mkdirSync((stage.workdir = join(folder, text)), { recursive: true });
    else if (instruction === "ENV") Object.assign(stage.env, envOf(text));
    else if (instruction === "USER") stage.user = text;
    else if (instruction === "COPY") copy(stage, stages, copyOf(text));
    else if (changesTheSystem({ instruction, text })) console.log(`NOT RUN: ${text}`);
    else if (instruction === "RUN") run(stage, text);
    else if (instruction === "HEALTHCHECK")
      stage.healthCheck = JSON.parse(text.slice(text.indexOf("CMD") + "CMD".length));
    else if (instruction === "ENTRYPOINT") stage.entrypoint = JSON.parse(text);
    else if (instruction === "CMD") stage.command = [...stage.entrypoint, ...JSON.parse(text)];
  }
}

function copy(stage, stages, { from, sources, target }) {
  const origin = stages.find(({ name }) => name === from);
  if (origin?.isLeftOut) return;
  const base = from === undefined ? context : origin.folder;
  for (const source of sources) {
    const path = join(base, source);
    assert.ok(existsSync(path), `COPY ${source}: it is not in ${from ?? "the build context"}`);
    // Docker copies the content of a folder, and a file into a target that ends in a slash or for one of several.
    const intoFolder = !statSync(path).isDirectory() && (target.endsWith("/") || sources.length > 1);
    const to = join(target.startsWith("/") ? stage.folder : stage.workdir, target, intoFolder ? basename(source) : "");
    cpSync(path, to, { recursive: true, verbatimSymlinks: true });
  }
}

function run(stage, command) {
  const started = performance.now();
  execFileSync("sh", ["-c", command], {
    cwd: stage.workdir,
    env: { ...environment, ...stage.env },
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
  });
  console.log(`RUN ${command} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
}

/** Starts the last stage's command on a free port. The image's user has the number 1000, and owns nothing here. */
async function start({ folder, workdir, env, command: given, user }, settings) {
  assert.notEqual(user, "root", "the image must not serve as root");
  const port = await freePort();
  const options = {
    cwd: workdir,
    env: { PATH: environment.PATH, ...env, ...settings, PORT: String(port) },
    ...(process.getuid() === 0 && { uid: 1000, gid: 1000 }),
  };
  const command = given.map((word) => word.replace(/^\/app\//, `${folder}/app/`));
  const server = spawn(command[0], command.slice(1), { ...options, stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [server.stdout, server.stderr]) stream.setEncoding("utf8").on("data", (text) => (log += text));
  const exited = new Promise((resolve) => server.once("exit", (code, signal) => resolve(code ?? signal)));
  return { server, options, exited, url: `http://127.0.0.1:${port}`, log: () => log };
}

/** Where there is no CUDA, an image for it must not serve slowly and in silence. */
async function refuse(stage) {
  const { exited, log } = await start(stage, {});
  assert.equal(await exited, 1, log());
  const [reason] = /[^"\n]*cuda[^"\n]*/i.exec(log()) ?? assert.fail(log());
  console.log(`CMD ${stage.command.join(" ")}: without a GPU it ends with 1: ${reason.slice(0, 160)}`);
}

async function serve(stage, settings) {
  const { server, options, exited, url, log } = await start(stage, settings);
  try {
    await until(() => isHealthy(stage.healthCheck, options), exited);
    await until(async () => (await fetch(`${url}/readyz`)).ok, exited);
    const response = await fetch(`${url}/v1/embeddings`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "use-lite", input: "The cat sits outside" }),
    });
    const { data } = await response.json();
    assert.equal(data[0].embedding.length, 512);
    const { data: models } = await (await fetch(`${url}/v1/models`)).json();
    const note = Object.keys(settings).length > 0 ? `; ${models[0].note ?? ""}` : "";
    console.log(`CMD ${stage.command.join(" ")}: healthy, ready, one embedding of 512 numbers${note}`);
  } catch (error) {
    throw new Error(`${error.message}\n${log()}`, { cause: error });
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
