// docs/stability.md is held to the code.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { root } from "../scripts/lib/files.mjs";
import { tableRows } from "../scripts/lib/markdown.mjs";
import { nodeVersions } from "../scripts/prove/lib/runtimes.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const json = (path) => JSON.parse(read(path));
const page = read("docs/stability.md");

test("docs/stability.md has a row for every version of Node that the packages allow, in the words of `engines`", () => {
  const stated = tableRows(page, "Node").map(([range]) => range);
  for (const name of ["sheaf", "sheaf-server"]) {
    const { engines } = json(`packages/${name}/package.json`);
    assert.deepEqual(stated.map((range) => `${range}.0`), engines.node.split(" || ")); // prettier-ignore
  }
  for (const [range, endOfLife] of tableRows(page, "Node")) assert.match(endOfLife, /^20\d\d-\d\d-\d\d$/, range);
});

test("CI runs the suites on every version of Node that `engines` names; the images are on one of the last two", () => {
  const { engines } = json("packages/sheaf/package.json");
  const supported = engines.node.split(" || ").map((range) => /^\^(\d+)\.\d+\.\d+$/.exec(range)[1]);
  const { matrix } = parse(read(".github/workflows/ci.yml")).jobs.suites.strategy;
  assert.deepEqual(matrix.node.map((version) => version.split(".")[0]), supported); // prettier-ignore
  assert.deepEqual(nodeVersions, supported);
  for (const file of ["Dockerfile", "deploy/Dockerfile.gpu"])
    for (const [, version] of read(file).matchAll(/^FROM node:(\d+)-/gm))
      assert.ok(supported.slice(-2).includes(version), `${file}: ${version}`);
});
