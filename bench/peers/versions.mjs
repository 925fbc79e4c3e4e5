import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cargoFolder, python, virtualEnvironment } from "./paths.mjs";
import { servers } from "./servers.mjs";

/** What was compared: the release of each server, by its name here. */
export const versionsOf = (names) => Object.fromEntries(names.map((name) => [name, versionOf(name, servers[name])]));

function versionOf(name, { python: environment, cargo }) {
  if (cargo !== undefined) return crates();
  const parts = [];
  if (name.startsWith("sheaf")) parts.push(...ours());
  else
    parts.push(
      `${environment} ${ask(environment, `import importlib.metadata as m; print(m.version("${environment}"))`)}`,
    );
  if (environment !== undefined)
    parts.push(`Python ${ask(environment, "import platform; print(platform.python_version())")}`);
  return parts.join(", ");
}

function crates() {
  const lock = readFileSync(`${cargoFolder}/Cargo.lock`, "utf8");
  const release = (name) => `${name} ${new RegExp(`name = "${name}"\nversion = "([^"]+)"`).exec(lock)[1]}`;
  return ["batched-fn", "axum", "ort"].map(release).join(", ");
}

function ours() {
  const manifest = new URL("../../packages/sheaf-server/package.json", import.meta.url);
  return [`sheaf-server ${JSON.parse(readFileSync(manifest, "utf8")).version}`, `Node ${process.version}`];
}

const ask = (environment, program) =>
  execFileSync(python(environment), ["-c", program], { encoding: "utf8", cwd: virtualEnvironment(environment) }).trim();
