import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
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
