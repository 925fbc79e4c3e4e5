/**
 * `npm run prove -- images [--image cpu,python,gpu]`: builds the images with a real engine and runs
 * them; part of `npm run test:release`. The base image is
 * made here, under the name that FROM asks for: Debian with that Node from npm. Each image serves as its own user,
 * without capabilities and with a root file system that cannot be written, until its health check passes and its model
 * has answered; SIGTERM must end it with 0. Needs root, Debian's buildah, runc and mmdebstrap, and about 3 GB of disk.
 *
 * The GPU image is built only by name: it downloads 1.4 GB and needs 10 GB of disk. Without a GPU it must refuse to start for
 * want of the driver alone, and serve on the CPU where that is allowed.
 */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../lib/files.mjs";
import { freePort, until } from "../../test/support/serving.mjs";
import { startContainer } from "./lib/container.mjs";
import { command, openEngine } from "./lib/image-engine.mjs";
import { imageNode } from "./lib/runtimes.mjs";

const text = { path: "/v1/embeddings", body: { model: "use-lite", input: "The cat sits outside" } };
const digit = { path: "/infer", body: { input: new Array(64).fill(0) } };
const images = {
  cpu: { file: "Dockerfile", tag: "sheaf", asks: text, gives: ({ data }) => `${data[0].embedding.length} numbers` },
  python: {
    file: "examples/python-scikit-learn/Dockerfile",
    context: "examples/python-scikit-learn",
    tag: "sheaf-digits",
    asks: digit,
    gives: ({ output }) => JSON.stringify(output),
  },
  gpu: {
    file: "deploy/Dockerfile.gpu",
    tag: "sheaf-gpu",
    check: lacksTheDriverOnly,
    environment: { INFERENCE_DEVICE: "cuda:0,cpu" },
    asks: text,
    gives: ({ data }) => `${data[0].embedding.length} numbers, on the CPU`,
  },
};

const { values } = parseArgs({ options: { image: { type: "string", default: "cpu,python" } } });
const wanted = values.image.split(",");
for (const name of wanted) assert.ok(Object.hasOwn(images, name), `--image takes ${Object.keys(images)}, got ${name}`);
// The others are built from it.
if (wanted.includes("python") && !wanted.includes("cpu")) wanted.unshift("cpu");

const folder = mkdtempSync(join(tmpdir(), "sheaf-images-"));
chmodSync(folder, 0o755);
const engine = openEngine(folder);
try {
  console.log(`${command("buildah", ["--version"]).trim()}, storage: ${engine.driver}`);
  const [, from] = /^FROM (\S+)/m.exec(readFileSync(`${root}/Dockerfile`, "utf8"));
  const node = imageNode(join(folder, "node"), from);
  timed(`${from}, made here: Debian's smallest system, ${node.name}`, () => engine.makeBase(from, node.path));
  for (const name of wanted) await prove(name, images[name]);
} finally {
  engine.close();
  rmSync(folder, { recursive: true, force: true });
}
console.log(`The images work: ${wanted.join(", ")}.`);

async function prove(name, { file, context = ".", tag, environment = {}, check, asks, gives }) {
  timed(`${file}: built`, () => engine.build(join(root, file), join(root, context), tag));
  const image = engine.open(tag);
  const size = command("du", ["-s", "-m", image.root]).split("\t")[0];
  const port = await freePort();
  await check?.(image, port);
  const container = startContainer(image, { folder, name, environment: { ...environment, PORT: port } });
  const url = `http://127.0.0.1:${port}`;
  try {
    await until(() => container.isHealthy(), container.exited);
    await until(async () => (await fetch(`${url}/readyz`)).ok, container.exited);
    const answer = await ask(url, asks);
    const { stdout: user } = container.exec("id", "-u");
    assert.equal(user.trim(), "1000");
    assert.notEqual(container.exec("touch", "/app/written").status, 0, "the root file system must not be writable");
    console.log(`  ${size} MB; as user ${user.trim()}, read-only: healthy, ready, answers ${gives(answer)}`);
    container.kill("TERM");
    assert.equal(await container.exited, 0, "SIGTERM must end the server with 0");
  } catch (error) {
    throw new Error(`${error.message}\n${container.log()}`, { cause: error });
  } finally {
    container.remove();
  }
}

/** Every library of ONNX Runtime's CUDA provider is there but the driver's own, which the host brings in. */
async function lacksTheDriverOnly(image, port) {
  const provider = "/app/node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime_providers_cuda.so";
  const libraries = command("chroot", [image.root, "ldd", provider]);
  assert.deepEqual(libraries.match(/\S+(?= => not found)/g), ["libcuda.so.1"], libraries);
  for (const library of ["libcudnn.so.9", "libcufft.so.12", "libnvrtc.so.13", "libvulkan.so.1"])
    assert.ok(
      command("chroot", [image.root, "ldconfig", "-p"]).includes(library),
      `${library}, which is loaded by name`,
    );
  const refused = startContainer(image, { folder, name: "gpu-refused", environment: { PORT: port } });
  try {
    assert.equal(await refused.exited, 1, refused.log());
    assert.match(
      refused.log(),
      /use-lite cannot be served on INFERENCE_DEVICE cuda:0: .*Failed to load shared library/,
    );
    console.log("  without a driver it refuses to start; libcuda.so.1 is the only library that is missing");
  } finally {
    refused.remove();
  }
}

async function ask(url, { path, body }) {
  const headers = { "content-type": "application/json" };
  const reply = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = await reply.json();
  assert.equal(reply.status, 200, JSON.stringify(answer));
  return answer;
}

function timed(what, work) {
  const started = performance.now();
  work();
  console.log(`${what} (${((performance.now() - started) / 1000).toFixed(0)} s)`);
}
