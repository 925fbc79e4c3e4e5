import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { copyOf, envOf, isIgnored, parseDockerfile } from "../scripts/lib/dockerfile.mjs";
import { root } from "../scripts/lib/files.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const files = ["Dockerfile", "Dockerfile.gpu"];
const images = new Map(files.map((file) => [file, parseDockerfile(read(file))]));
const stepsOf = (stage, wanted) =>
  stage.steps.filter(({ instruction }) => instruction === wanted).map(({ text }) => text);

for (const [file, stages] of images) {
  const last = stages.at(-1);

  test(`${file} serves on every address, not as root, and says when it lives`, () => {
    assert.equal(envOf(stepsOf(last, "ENV")[0]).HOST, "0.0.0.0");
    assert.match(stepsOf(last, "USER")[0], /^(node|1000)$/);
    assert.match(stepsOf(last, "HEALTHCHECK")[0], /--start-period=\d+s .*\/livez/);
  });

  test(`every COPY of ${file} takes files that git holds and .dockerignore lets through, or that an earlier stage made`, () => {
    const tracked = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" }).trim().split("\n");
    const context = tracked.filter((path) => !isIgnored(path, read(".dockerignore")));
    for (const text of stages.flatMap((stage) => stepsOf(stage, "COPY"))) {
      const { from, sources } = copyOf(text);
      const isThere = (source) => context.some((path) => path === source || path.startsWith(`${source}/`));
      if (from === undefined) assert.ok(sources.every(isThere), `COPY ${text}`);
      else assert.ok(stages.some(({ name }) => name === from), text); // prettier-ignore
    }
  });
}

test("the image of a Python model adds Python to the server's, and serves as its user again", () => {
  const example = "examples/python-scikit-learn/Dockerfile";
  const [stage] = parseDockerfile(read(example));
  assert.equal(stage.from, "sheaf");
  assert.equal(stepsOf(stage, "USER").at(-1), "node");
  assert.ok(read("docs/guide/python.md").includes(read(example).replaceAll(/^#.*\n/gm, "")), "the guide shows another");
});

test("the GPU image takes the CUDA provider of the ONNX Runtime that npm installs, and the CPU image takes none", () => {
  const { version } = JSON.parse(read("package-lock.json")).packages["node_modules/onnxruntime-node"];
  const pins = read("deploy/cuda.txt").split("\n").filter((line) => /^[^#\s]/.test(line)); // prettier-ignore
  assert.ok(pins.includes(`onnxruntime-gpu==${version}`), `deploy/cuda.txt must name onnxruntime-gpu==${version}`);
  for (const pin of pins) assert.match(pin, /^[a-z\d-]+==[\d.]+$/);
  const [gpu, cpu] = ["Dockerfile.gpu", "Dockerfile"].map((file) => images.get(file));
  assert.deepEqual(stepsOf(gpu[0], "RUN"), stepsOf(cpu[0], "RUN"));
  assert.deepEqual(gpu.map(({ name }) => name), ["build", "cuda", undefined]); // prettier-ignore
  assert.equal(envOf(stepsOf(gpu.at(-1), "ENV")[0]).INFERENCE_DEVICE, "cuda:0");
});

test("compose.yaml has a service for each image, waits longer than SHUTDOWN_GRACE_MS, and gives the GPU only to its own", () => {
  const { services } = parse(read("compose.yaml"), { merge: true });
  const images = Object.entries(services).filter(([name]) => name.startsWith("inference-"));
  assert.deepEqual(images.map(([name]) => name).sort(), ["inference-cpu", "inference-gpu"]);
  for (const [name, { build, deploy, stop_grace_period: grace }] of images) {
    assert.match(grace, /^\d+s$/);
    assert.ok(parseInt(grace, 10) > 25, "the engine must wait longer than SHUTDOWN_GRACE_MS");
    const isGpu = name === "inference-gpu";
    assert.equal(build.dockerfile === "Dockerfile.gpu", isGpu);
    assert.equal(JSON.stringify(deploy ?? {}).includes('"gpu"'), isGpu);
  }
});

test("no test, build output or dependency goes into the image's context", () => {
  const ignore = read(".dockerignore");
  for (const path of [
    "packages/sheaf/test/errors.test.ts",
    "packages/sheaf/dist/index.js",
    "node_modules/x/index.js",
    ".git/config",
  ])
    assert.ok(isIgnored(path, ignore), path);
  for (const path of ["packages/sheaf/src/index.ts", "package.json", "packages/sheaf/src/tests.ts"])
    assert.ok(!isIgnored(path, ignore), path);
});

test("the parser joins continued lines, leaves comments out and refuses what it does not know", () => {
  const [stage] = parseDockerfile("FROM a AS b\n# no\nRUN one && \\\n  two\nENV x=1 y=a=b\n");
  assert.deepEqual(stage, {
    from: "a",
    name: "b",
    steps: [
      { instruction: "RUN", text: "one && two" },
      { instruction: "ENV", text: "x=1 y=a=b" },
    ],
  });
  assert.deepEqual(envOf("x=1 y=a=b"), { x: "1", y: "a=b" });
  assert.throws(() => parseDockerfile("FROM a\nADD b c\n"), /does not know: ADD/);
});
