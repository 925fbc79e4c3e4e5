import { relative } from "node:path";
import { root } from "./files.mjs";

/** The suite a test file belongs to: its package and, where there is one, the kind of test its folder names. */
export function suiteOf(file) {
  const path = relative(root, file);
  const inPackage = /^packages\/([^/]+)\/dist-test\/(?:([^/]+)\/)?/.exec(path);
  if (inPackage === null) return path.startsWith("test/") ? "repository" : path.split("/", 1)[0];
  const [, name, folder] = inPackage;
  return `${name} ${["properties", "simulation", "e2e"].includes(folder) ? folder : "unit"}`;
}
