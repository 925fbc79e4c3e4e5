// The parts of a release; `npm run release -- --dry-run` is all of it, and `npm run prove -- release` what users then get.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { nodeVersions } from "../scripts/prove/lib/runtimes.mjs";
import { cutChangelog, unreleasedNotes, withoutPreReleaseNotes } from "../scripts/lib/release/documents.mjs";
import { packageNames, placeholdersIn, readMetadata, withMetadata } from "../scripts/lib/release/metadata.mjs";
import { stamp, versionToRelease } from "../scripts/lib/release/version.mjs";
import { root } from "../scripts/lib/files.mjs";
import { userEnvironment } from "../scripts/lib/tarballs.mjs";

const read = (path, folder = root) => readFileSync(`${folder}/${path}`, "utf8");
const json = (path, folder) => JSON.parse(read(path, folder));

test("what npm shows of the packages comes from metadata.json", () => {
  for (const name of packageNames) {
    const manifest = json(`packages/${name}/package.json`);
    assert.deepEqual(manifest, withMetadata(manifest, readMetadata()), "node scripts/record.mjs metadata writes it");
  }
});

test("a field of metadata.json that only the owner can fill in is a placeholder until then", () => {
  const filled = {
    author: "Ada <ada@lovelace.org>",
    repository: "https://github.com/ada/sheaf",
    homepage: "https://github.com/ada/sheaf#readme",
    bugs: "https://github.com/ada/sheaf/issues",
  };
  assert.deepEqual(placeholdersIn(filled), []);
  assert.deepEqual(placeholdersIn({ ...filled, author: "OWNER <x@y.org>" }), ["author: OWNER <x@y.org>"]);
  assert.deepEqual(placeholdersIn({ ...filled, author: "Ada <ada@example.com>" }), ["author: Ada <ada@example.com>"]);
  const { bugs: _, ...incomplete } = filled;
  assert.deepEqual(placeholdersIn(incomplete), ["bugs: "]);
});

test("a release with uncommitted changes or placeholders ends before it does anything", (t) => {
  const clone = mkdtempSync(join(tmpdir(), "sheaf-release-test-"));
  t.after(() => rmSync(clone, { recursive: true }));
  const git = (...parameters) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...parameters], { cwd: clone });
  git("init", "--quiet");
  for (const path of ["scripts", "packages/sheaf/package.json"])
    cpSync(`${root}/${path}`, `${clone}/${path}`, { recursive: true });
  const release = () => {
    const options = { cwd: clone, env: userEnvironment(), encoding: "utf8", stdio: "pipe" };
    try {
      return execFileSync(process.execPath, ["scripts/release.mjs"], options);
    } catch ({ status, stderr }) {
      return `${status} ${stderr}`;
    }
  };
  assert.match(release(), /^1 ✖ Commit or remove first:\n\?\? packages/);
  git("add", ".");
  git("commit", "--quiet", "--message", "all");
  if (placeholdersIn(readMetadata()).length > 0)
    assert.match(release(), /^1 ✖ metadata\.json holds placeholders that only the owner can fill in:\n {2}author: /);
  assert.equal(git("tag").toString(), "");
});

test("the version is the packages' own or the one asked for, and never one that has a tag", () => {
  assert.equal(versionToRelease(undefined, "0.1.0", [""]), "0.1.0");
  assert.equal(versionToRelease("0.2.0-beta.1", "0.1.0", ["v0.1.0"]), "0.2.0-beta.1");
  assert.throws(() => versionToRelease(undefined, "0.1.0", ["v0.1.0"]), /^Error: v0\.1\.0 is released: name the next/);
  assert.throws(() => versionToRelease("v1", "0.1.0", []), /A version looks like 1\.2\.3 or 1\.2\.3-beta\.1, got "v1"/);
});

test("a version stands in both packages, the lockfile, and whatever depends on them", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-stamp-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const paths = ["package-lock.json", ...packageNames.map((name) => `packages/${name}/package.json`), "examples/grpc"];
  for (const path of paths) cpSync(`${root}/${path}`, `${folder}/${path}`, { recursive: true });
  stamp(folder, "7.8.9", readMetadata());
  const { packages } = json("package-lock.json", folder);
  for (const name of packageNames) {
    assert.equal(json(`packages/${name}/package.json`, folder).version, "7.8.9");
    assert.equal(packages[`packages/${name}`].version, "7.8.9");
  }
  assert.equal(json("packages/sheaf-server/package.json", folder).dependencies.sheaf, "7.8.9");
  assert.equal(packages["packages/sheaf-server"].dependencies.sheaf, "7.8.9");
  assert.equal(json("examples/grpc/package.json", folder).dependencies["sheaf-server"], "^7.8.9");
});

test("cutting the changelog dates what is unreleased and opens an empty section above it", () => {
  const text = "# Changelog\n\n## Unreleased\n\n- one\n\n## 0.1.0 (2026-01-02)\n\n- zero\n";
  assert.equal(unreleasedNotes(text), "- one");
  const cut = cutChangelog(text, "0.2.0", "2026-11-23");
  assert.equal(
    cut,
    "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-11-23)\n\n- one\n\n## 0.1.0 (2026-01-02)\n\n- zero\n",
  );
  assert.throws(() => cutChangelog(cut, "0.3.0", "2026-11-24"), /nothing under Unreleased/);
  assert.notEqual(unreleasedNotes(read("CHANGELOG.md")), "");
});

test("a document loses at the release what holds only until then", () => {
  const text = "one\n\n<!-- until released -->\n\ntwo\n\n<!-- released -->\n\nthree\n";
  assert.equal(withoutPreReleaseNotes(text), "one\n\nthree\n");
});

test("CI runs the suites on every version of Node that `engines` names; the images are on one of the last two", () => {
  const versions = packageNames.map((name) => json(`packages/${name}/package.json`).engines.node);
  assert.equal(versions[0], versions[1]);
  const supported = versions[0].split(" || ").map((range) => /^\^(\d+)\.\d+\.\d+$/.exec(range)[1]);
  const { matrix } = parse(read(".github/workflows/ci.yml")).jobs.suites.strategy;
  assert.deepEqual(matrix.node.map((version) => version.split(".")[0]), supported); // prettier-ignore
  assert.deepEqual(nodeVersions, supported);
  for (const file of ["Dockerfile", "deploy/Dockerfile.gpu"])
    for (const [, version] of read(file).matchAll(/^FROM node:(\d+)-/gm))
      assert.ok(supported.slice(-2).includes(version), `${file}: ${version}`);
});
