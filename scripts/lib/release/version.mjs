import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { lineOf, reportOf, stepOf, stepsBySize } from "../surface/changes.mjs";
import { packageNames, withMetadata } from "./metadata.mjs";

const isVersion = (text) => /^\d+\.\d+\.\d+(?:-[a-z]+\.\d+)?$/.test(text);

/**
 * The version to release: the one asked for, else the packages' own.
 * @throws {Error} if it is none, or has its tag already.
 */
export function versionToRelease(asked, current, tags) {
  const version = asked ?? current;
  if (!isVersion(version)) throw new Error(`A version looks like 1.2.3 or 1.2.3-beta.1, got "${version}"`);
  if (tags.includes(`v${version}`)) throw new Error(`v${version} is released: name the next version`);
  return version;
}

/** The newest version that has a tag, undefined before the first; pre-releases do not count. */
export function latestVersion(tags) {
  const numbers = (tag) => tag.slice(1).split(".").map(Number);
  const released = tags.filter((tag) => /^v\d+\.\d+\.\d+$/.test(tag));
  const compare = (left, right) =>
    numbers(left)
      .map((number, at) => number - numbers(right)[at])
      .find(Boolean) ?? 0;
  return released.sort(compare).at(-1)?.slice(1);
}

/**
 * @throws {Error} where a version is a smaller step from the last one than the changes of the public surface since then demand.
 */
export function checkStep(version, previous, changes) {
  const [now, before] = [version, previous].map((text) => text.split("-")[0].split(".").map(Number));
  const taken = stepsBySize.findIndex((_, at) => now[at] !== before[at]);
  const demanded = stepOf(changes, lineOf(previous));
  if (demanded !== undefined && (taken === -1 || taken > stepsBySize.indexOf(demanded)))
    throw new Error(`${version} is too small a step:\n${reportOf(changes, previous)}`);
}

/** Writes the version and the metadata into every manifest of a checkout that has it, the lockfile and the examples included. */
export function stamp(folder, version, metadata) {
  for (const name of packageNames)
    rewrite(`${folder}/packages/${name}/package.json`, (manifest) => ({
      ...withVersion(withMetadata(manifest, metadata), version, ""),
      version,
    }));
  for (const example of readdirSync(`${folder}/examples`)) {
    const path = `${folder}/examples/${example}/package.json`;
    if (existsSync(path)) rewrite(path, (manifest) => withVersion(manifest, version, "^"));
  }
  rewrite(`${folder}/package-lock.json`, (lock) => {
    for (const name of packageNames) {
      const entry = lock.packages[`packages/${name}`];
      lock.packages[`packages/${name}`] = withVersion({ ...entry, version }, version, "");
    }
    return lock;
  });
}

/** A manifest that depends on this version of ours. */
function withVersion({ ...manifest }, version, range) {
  const { dependencies } = manifest;
  if (dependencies === undefined) return manifest;
  const ours = packageNames.filter((name) => Object.hasOwn(dependencies, name));
  return {
    ...manifest,
    dependencies: { ...dependencies, ...Object.fromEntries(ours.map((name) => [name, `${range}${version}`])) },
  };
}

function rewrite(path, change) {
  writeFileSync(path, `${JSON.stringify(change(JSON.parse(readFileSync(path, "utf8"))), null, 2)}\n`);
}
