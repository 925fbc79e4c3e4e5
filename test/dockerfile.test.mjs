import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { copyOf, envOf, isIgnored, parseDockerfile } from "../scripts/lib/dockerfile.mjs";
import { root } from "../scripts/lib/files.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const stages = parseDockerfile(read("Dockerfile"));
const last = stages.at(-1);
const textOf = (instruction) => last.steps.find((step) => step.instruction === instruction)?.text;

test("the image serves on every address, not as root, and says when it lives", () => {
  assert.equal(envOf(textOf("ENV")).HOST, "0.0.0.0");
  assert.equal(textOf("USER"), "node");
  assert.match(textOf("HEALTHCHECK"), /--start-period=30s .*\/livez/);
  const [, grace] = /stop_grace_period: (\d+)s/.exec(read("compose.yaml"));
  assert.ok(Number(grace) > 25, "the engine must wait longer than SHUTDOWN_GRACE_MS");
});

test("every COPY takes files that git holds and .dockerignore lets through, or that an earlier stage made", () => {
  const tracked = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" }).trim().split("\n");
  const context = tracked.filter((path) => !isIgnored(path, read(".dockerignore")));
  for (const { steps } of stages)
    for (const { text } of steps.filter(({ instruction }) => instruction === "COPY")) {
      const { from, sources } = copyOf(text);
      if (from !== undefined)
        assert.ok(
          stages.some(({ name }) => name === from),
          text,
        );
      else
        for (const source of sources)
          assert.ok(
            context.some((path) => path === source || path.startsWith(`${source}/`)),
            `COPY ${source}`,
          );
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
