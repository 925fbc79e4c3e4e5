// docs/stability.md and test/fixtures/public-surface.json are held to the code and to each other.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../scripts/lib/files.mjs";
import { tableRows } from "../scripts/lib/markdown.mjs";
import { publicExports } from "../scripts/lib/public-exports.mjs";
import { changesOf, reportOf, steps, stepOf } from "../scripts/lib/surface/changes.mjs";
import { publicNames } from "../scripts/lib/surface/names.mjs";
import { publicSurface } from "../scripts/lib/surface/surface.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const json = (path) => JSON.parse(read(path));
const page = read("docs/stability.md");
const recorded = json("test/fixtures/public-surface.json");
const actual = await publicSurface();

test("the public surface is the recorded one", () => {
  const changes = changesOf(recorded, actual);
  assert.equal(changes.length, 0, reportOf(changes, json("packages/sheaf/package.json").version));
});

test("the surface holds every export of every entry point, and no area of it is empty", () => {
  const exported = Object.entries(publicExports()).flatMap(([specifier, names]) =>
    names.map((name) => `${specifier} ${name.replace(/^type /, "")}`),
  );
  assert.deepEqual(exported.filter((name) => !Object.hasOwn(actual.name, name)), []); // prettier-ignore
  for (const [area, names] of Object.entries(actual)) assert.ok(Object.keys(names).length > 0, area);
});

test("docs/stability.md lists the areas of the surface, and the steps of a version as they are checked", () => {
  assert.deepEqual(tableRows(page, "area").map(([area]) => area), Object.keys(actual)); // prettier-ignore
  const stated = tableRows(page, "change").map(([kind, before, from]) => [kind, { "0.x": before, "1.x": from }]);
  assert.deepEqual(Object.fromEntries(stated.filter(([kind]) => kind !== "fix")), steps);
});

test("names are read with their kinds, members, values, defaults and deprecation", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-names-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const types = join(folder, "index.d.ts");
  writeFileSync(
    types,
    `export interface Options extends Omit<Base, "size"> {
      /** Most. @default 32, as everywhere */
      readonly most?: number | undefined;
      /** @deprecated use most */
      readonly limit?: "none" | number;
      on(event: string, ...more: unknown[]): void;
      nested: { inner?: boolean };
    }
    export interface Base { size: number }
    export declare class Job extends Error { #own; private hidden; readonly id: string; }
    declare function start(this: void, job: Job, { a }?: { a?: number }): void;
    export { start as begin };
    export declare const f: (a: number) => void, c: number;
    export type Kind = "x" | "y";`,
  );
  assert.deepEqual(publicNames([{ specifier: "p", types }]), {
    "p Options": 'type extends Omit<Base, "size">',
    "p Options.most": "optional = 32",
    "p Options.limit": "deprecated optional",
    'p Options.limit "none"': "value",
    "p Options.on": "method (event, ...more)",
    "p Options.nested": "required",
    "p Options.nested.inner": "optional",
    "p Base": "type",
    "p Base.size": "required",
    "p Job": "class extends Error",
    "p Job.id": "required",
    "p begin": "function (job, options?)",
    "p begin.a": "optional",
    "p f": "function (a)",
    "p c": "constant",
    "p Kind": "type",
    'p Kind "x"': "value",
    'p Kind "y"': "value",
  });
});

/** The kinds of the changes that an edit of a small surface makes. */
const small = {
  name: {
    "sheaf run": "function (a, b?)",
    "sheaf Job.wait": "method (ms)",
    "sheaf Job.name": "required",
    "sheaf JobOptions.size": "required",
    "sheaf JobOptions.limit": "optional = 32",
  },
  route: { "POST /infer": "route", "POST /infer body.input": "field" },
  setting: { PORT: "8000" },
  metric: { sheaf_items_total: "counter" },
  "HTTP error": { QUEUE_FULL: "429" },
  "Python name": { serve: "def", "serve(run)": "required" },
  wire: { "worker protocol": "version 1", "HTTP request.items": "field", "NATS Head.id": "required" },
  runtime: { "sheaf on Node ^20.19.0": "engine" },
};
const kindsAfter = (edit) => {
  const edited = structuredClone(small);
  edit(edited);
  return changesOf(small, edited).map(({ kind }) => kind);
};

for (const [what, kind, edit] of [
  ["a new setting", "compatible", ({ setting }) => (setting.HOST = "none")],
  ["a new route", "compatible", ({ route }) => (route["GET /new"] = "route")],
  ["a new optional option", "compatible", ({ name }) => (name["sheaf JobOptions.more"] = "optional")],
  ["a new member of a result", "compatible", ({ name }) => (name["sheaf Job.more"] = "required")],
  ["an option that has become optional", "compatible", ({ name }) => (name["sheaf JobOptions.size"] = "optional")],
  ["one more optional parameter", "compatible", ({ name }) => (name["sheaf run"] = "function (a, b?, c?)")],
  ["another name of a parameter", "compatible", ({ name }) => (name["sheaf Job.wait"] = "method (timeMs)")],
  ["one more overload", "compatible", ({ name }) => (name["sheaf run"] = "function (a, b?) or function ()")],
  ["a deprecated option", "compatible", ({ name }) => (name["sheaf JobOptions.limit"] = "deprecated optional = 32")],
  ["an optional parameter in Python", "compatible", (surface) => (surface["Python name"]["serve(more)"] = "None")],
  ["one that has become optional", "compatible", (surface) => (surface["Python name"]["serve(run)"] = "None")],
  ["an optional field of a message over NATS", "compatible", ({ wire }) => (wire["NATS Head.more"] = "optional")],
  ["a required parameter in Python", "breaking", (surface) => (surface["Python name"]["serve(more)"] = "required")],
  ["a required field of a message over NATS", "breaking", ({ wire }) => (wire["NATS Head.more"] = "required")],
  ["a new required option", "breaking", ({ name }) => (name["sheaf JobOptions.more"] = "required")],
  ["one more required parameter", "breaking", ({ name }) => (name["sheaf Job.wait"] = "method (ms, why)")],
  ["one parameter less", "breaking", ({ name }) => (name["sheaf run"] = "function (a)")],
  ["a parameter that has become required", "breaking", ({ name }) => (name["sheaf run"] = "function (a, b)")],
  ["a member of a result that may be absent", "breaking", ({ name }) => (name["sheaf Job.name"] = "optional")],
  ["another default of an option", "breaking", ({ name }) => (name["sheaf JobOptions.limit"] = "optional = 64")],
  ["another kind", "breaking", ({ name }) => (name["sheaf run"] = "class")],
  ["another default of a setting", "breaking", ({ setting }) => (setting.PORT = "8080")],
  ["another status of an error", "breaking", (surface) => (surface["HTTP error"].QUEUE_FULL = "503")],
  ["another type of a metric", "breaking", ({ metric }) => (metric.sheaf_items_total = "gauge")],
  ["a field of a body that is gone", "breaking", ({ route }) => delete route["POST /infer body.input"]],
  ["another number of the worker protocol", "breaking", ({ wire }) => (wire["worker protocol"] = "version 2")],
  ["a new field in requests to an endpoint", "breaking", ({ wire }) => (wire["HTTP request.tags"] = "field")],
  ["an area that is gone", "breaking", (surface) => delete surface.metric],
  ["a version of Node that is dropped", "runtime", ({ runtime }) => delete runtime["sheaf on Node ^20.19.0"]],
])
  test(`${what} is ${kind}`, () => assert.deepEqual(kindsAfter(edit), [kind]));

test("a new name for a metric is an old one that is gone and a new one; the report says so, with the version that it takes", () => {
  const renamed = { ...small, metric: { sheaf_results_total: "counter" } };
  const changes = changesOf(small, renamed);
  assert.equal(stepOf(changes, "1.x"), "major");
  const report = reportOf(changes, "0.1.0").split("\n");
  assert.equal(report[0], "breaking: metric sheaf_items_total is gone (at least a minor version)");
  assert.equal(report[1], "compatible: metric sheaf_results_total is new (at least a patch version)");
  assert.match(report[2], /^Together at least a minor version after 0\.1\.0, .*record\.mjs surface/);
});

test("docs/stability.md has a row for every version of Node that the packages allow, in the words of `engines`", () => {
  const stated = tableRows(page, "Node").map(([range]) => range);
  for (const name of ["sheaf", "sheaf-server"]) {
    const { engines } = json(`packages/${name}/package.json`);
    assert.deepEqual(stated.map((range) => `${range}.0`), engines.node.split(" || ")); // prettier-ignore
  }
  for (const [range, endOfLife] of tableRows(page, "Node")) assert.match(endOfLife, /^20\d\d-\d\d-\d\d$/, range);
});

test("docs/stability.md lists every deprecated name, and back", () => {
  const marked = Object.entries(actual.name).filter(([, shape]) => shape.includes("deprecated "));
  const stated = tableRows(page, "deprecated").map(([name]) => name.replaceAll("`", ""));
  assert.deepEqual(stated, marked.map(([name]) => name)); // prettier-ignore
});
