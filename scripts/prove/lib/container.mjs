import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { command } from "./image-engine.mjs";

/**
 * Starts an image's command with runc: as the image's user, without a capability, on a root file system that cannot be
 * written. `mounts` are added to runc's own. The network is this machine's, so that its port can be asked.
 */
export function startContainer({ config, root }, { folder, name, environment, mounts = [] }) {
  const bundle = join(folder, name);
  mkdirSync(bundle);
  command("runc", ["spec", "--bundle", bundle]);
  const file = join(bundle, "config.json");
  const spec = JSON.parse(readFileSync(file, "utf8"));
  const env = { ...Object.fromEntries(config.Env.map((pair) => pair.split(/=(.*)/s))), ...environment };
  spec.root = { path: root, readonly: true };
  spec.process = {
    ...spec.process,
    terminal: false,
    user: userOf(config.User, root),
    args: [...(config.Entrypoint ?? []), ...config.Cmd],
    cwd: config.WorkingDir,
    env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
    capabilities: {},
    noNewPrivileges: true,
  };
  spec.linux.namespaces = spec.linux.namespaces.filter(({ type }) => type !== "network");
  // A /sys of its own can only be mounted with a network of its own.
  spec.mounts = [...spec.mounts.filter(({ destination }) => !destination.startsWith("/sys")), ...mounts];
  writeFileSync(file, JSON.stringify(spec));

  const state = ["--root", join(folder, "containers")];
  const runc = (...parameters) => spawnSync("runc", [...state, ...parameters], { encoding: "utf8", timeout: 60_000 });
  const server = spawn("runc", [...state, "run", "--bundle", bundle, name], { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [server.stdout, server.stderr]) stream.setEncoding("utf8").on("data", (text) => (log += text));
  const exited = new Promise((resolve) => server.once("exit", (code, signal) => resolve(code ?? signal)));
  return {
    exited,
    log: () => log,
    /** Runs a command inside, as the same user. */
    exec: (...parameters) => runc("exec", name, ...parameters),
    /** The image's own health check. */
    isHealthy: () => runc("exec", name, ...config.Healthcheck.Test.slice(1)).status === 0,
    kill: (signal) => runc("kill", name, signal),
    remove: () => runc("delete", "--force", name),
  };
}

/** `node` or `1000` as numbers, by the image's own /etc/passwd. */
function userOf(user, root) {
  const lines = readFileSync(join(root, "etc/passwd"), "utf8").split("\n");
  const known = lines.map((line) => line.split(":")).find(([name, , uid]) => name === user || uid === user);
  if (known === undefined) return { uid: Number(user), gid: 0 };
  return { uid: Number(known[2]), gid: Number(known[3]) };
}
