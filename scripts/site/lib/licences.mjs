import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../lib/files.mjs";

/**
 * A plugin of Vite that adds `licences.txt`: the licence of every package whose code, style or font stands in the site. It
 * fails the build for a package that NOTICE does not name.
 */
export function licences() {
  return {
    name: "sheaf:licences",
    apply: (_, { isSsrBuild }) => isSsrBuild !== true,
    generateBundle(_, bundle) {
      const packages = packagesIn(bundle);
      const notice = readFileSync(`${root}/NOTICE`, "utf8");
      const unnamed = packages.filter(({ name }) => !notice.includes(`"${name}"`)).map(({ name }) => name);
      if (unnamed.length > 0) this.error(`NOTICE must name what the site bundles: ${unnamed.join(", ")}`);
      const source = packages.map(licenceOf).join(`\n${"-".repeat(80)}\n\n`);
      this.emitFile({ type: "asset", fileName: "licences.txt", source });
    },
  };
}

/** The packages that the files of a bundle come from, sorted: `{ name, folder }`. */
function packagesIn(bundle) {
  const files = Object.values(bundle).flatMap(({ modules = {}, originalFileNames = [] }) => [
    ...Object.keys(modules),
    ...originalFileNames,
  ]);
  const found = new Map();
  for (const file of files) {
    const [, above, name] = /^\0?(.*node_modules\/)((?:@[^/]+\/)?[^/]+)\//.exec(file) ?? [];
    if (name !== undefined) found.set(name, above + name);
  }
  const all = [...found].map(([name, path]) => ({ name, folder: path.slice(path.indexOf("node_modules/")) }));
  return all.sort((a, b) => a.name.localeCompare(b.name));
}

function licenceOf({ name, folder }) {
  const path = join(root, "scripts/site", folder);
  const { version, license, homepage } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  const file = readdirSync(path).find((entry) => /^licen[cs]e/i.test(entry));
  // One package has only the name of its licence.
  const text = file === undefined ? homepage : readFileSync(join(path, file), "utf8").trim();
  return `${name} ${version}: ${license}\n\n${text}\n`;
}
