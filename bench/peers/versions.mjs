import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cargoFolder, python, virtualEnvironment } from "./paths.mjs";
import { servers } from "./servers.mjs";

/** What was compared: the release of each server, by its name here. */
export const versionsOf = (names) => Object.fromEntries(names.map((name) => [name, versionOf(servers[name])]));

function versionOf({ python: environment, cargo, distribution = environment }) {
  if (environment !== undefined) {
    const program = `import importlib.metadata as m, platform; print(m.version("${distribution}"), "on Python", platform.python_version())`;
    return `${distribution} ${execFileSync(python(environment), ["-c", program], { encoding: "utf8", cwd: virtualEnvironment(environment) }).trim()}`;
  }
  if (cargo !== undefined) {
    const lock = readFileSync(`${cargoFolder}/Cargo.lock`, "utf8");
    const release = (name) => `${name} ${new RegExp(`name = "${name}"\\nversion = "([^"]+)"`).exec(lock)[1]}`;
    return ["batched-fn", "axum", "ort"].map(release).join(", ");
  }
  const { version } = JSON.parse(
    readFileSync(new URL("../../packages/sheaf-server/package.json", import.meta.url), "utf8"),
  );
  return `sheaf-server ${version}, Node ${process.version}`;
}
