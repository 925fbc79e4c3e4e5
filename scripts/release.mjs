/**
 * `npm run release -- [VERSION] [--dry-run]`: makes the release commit and its tag in a fresh clone, builds, packs and checks
 * what npm would publish, and pushes both; the workflow that starts at the tag publishes. `--dry-run` does all but the push.
 * `--pack` only packs and checks this checkout, as that workflow does. Tarballs, SBOMs and checksums are left in
 * artifacts/release. RELEASING.md says what the owner does.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./lib/files.mjs";
import { cutChangelog, unreleasedNotes, withoutPreReleaseNotes } from "./lib/release/documents.mjs";
import { placeholdersIn, readMetadata } from "./lib/release/metadata.mjs";
import { packRelease, runIn } from "./lib/release/pack.mjs";
import { step } from "./lib/release/step.mjs";
import { stamp, versionToRelease } from "./lib/release/version.mjs";

const flag = { type: "boolean", default: false };
const { values, positionals } = parseArgs({ options: { "dry-run": flag, pack: flag }, allowPositionals: true });
const temporary = mkdtempSync(join(tmpdir(), "sheaf-release-"));
process.on("exit", () => rmSync(temporary, { recursive: true, force: true }));
const clone = join(temporary, "clone");
const artifacts = `${root}/artifacts/release`;

try {
  if (values.pack) packRelease(root, versionOf(root), artifacts, temporary);
  else release({ isRehearsal: values["dry-run"] });
} catch (error) {
  console.error(`✖ ${error.message}\n${error.stdout ?? ""}${error.stderr ?? ""}`);
  process.exitCode = 1;
}

function release({ isRehearsal }) {
  const changed = git(root, "status", "--porcelain");
  if (changed !== "") throw new Error(`Commit or remove first:\n${changed}`);
  console.log("✔ the tree is clean");
  checkMetadata(isRehearsal);
  const version = versionToRelease(positionals[0], versionOf(root), git(root, "tag").split("\n"));
  console.log(`✔ version ${version}; the tag v${version} is free`);

  const run = runIn(clone);
  step("a fresh clone, npm ci", () => {
    git(temporary, "clone", "--quiet", root, clone);
    run("npm", "ci", "--loglevel=error");
  });
  const notes = unreleasedNotes(readFileSync(`${clone}/CHANGELOG.md`, "utf8"));
  step("version and metadata stamped, changelog cut", () => {
    stamp(clone, version, readMetadata());
    change("CHANGELOG.md", (text) => cutChangelog(text, version, new Date().toISOString().slice(0, 10)));
    for (const document of ["README.md", "examples/README.md"]) change(document, withoutPreReleaseNotes);
    run("npx", "prettier", "--write", "--log-level=warn", "packages/*/package.json", "examples/*/package.json");
    run("npm", "ci", "--dry-run", "--loglevel=error");
  });
  packRelease(clone, version, artifacts, temporary);
  step(`commit and tag v${version}`, () => {
    git(clone, "commit", "--quiet", "--all", "--allow-empty", "--message", `release: ${version}`);
    git(clone, "tag", "--annotate", `v${version}`, "--message", notes);
  });

  const push = ["push", "--atomic", "origin", "HEAD:main", `v${version}`];
  if (isRehearsal) {
    console.log(`${git(clone, "show", "--stat", "--format=%s", "HEAD")}\n`);
    console.log(
      `A rehearsal ends here, before git ${push.join(" ")}. What would be published is in artifacts/release.`,
    );
    return;
  }
  git(clone, "remote", "set-url", "origin", git(root, "remote", "get-url", "origin"));
  step(`git ${push.join(" ")}`, () => git(clone, ...push));
  console.log("The release workflow publishes from the tag. Next: git pull.");
}

/** @throws {Error} where the owner has not filled in metadata.json. A rehearsal only says so. */
function checkMetadata(isRehearsal) {
  const placeholders = placeholdersIn(readMetadata());
  if (placeholders.length === 0) {
    console.log("✔ metadata.json is filled in");
    return;
  }
  const refusal = `metadata.json holds placeholders that only the owner can fill in:\n  ${placeholders.join("\n  ")}`;
  if (!isRehearsal) throw new Error(refusal);
  console.log(`✖ A release stops here: ${refusal}\n  The rehearsal goes on with them.`);
}

function versionOf(checkout) {
  return JSON.parse(readFileSync(`${checkout}/packages/sheaf/package.json`, "utf8")).version;
}

function change(path, edit) {
  writeFileSync(`${clone}/${path}`, edit(readFileSync(`${clone}/${path}`, "utf8")));
}

function git(cwd, ...parameters) {
  return execFileSync("git", parameters, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
}
