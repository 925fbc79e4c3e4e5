import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { userEnvironment } from "../../../lib/tarballs.mjs";
import { freePort, until } from "../../../../test/support/serving.mjs";

/**
 * Starts verdaccio in a folder: a registry on this machine that holds what is published to it and takes all else from the
 * registry that npm is configured for. `publish` takes a tarball; `stop` ends it.
 */
export async function startRegistry(tool, folder) {
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  const { stdout: upstream } = spawnSync("npm", ["config", "get", "registry"], {
    env: userEnvironment(),
    encoding: "utf8",
  });
  const all = { access: "$all", publish: "$authenticated" };
  const config = {
    storage: join(folder, "storage"),
    auth: { htpasswd: { file: join(folder, "htpasswd"), max_users: 1 } },
    uplinks: { upstream: { url: upstream.trim(), maxage: "60m", timeout: "120s", max_fails: 100 } },
    packages: { sheaf: all, "sheaf-server": all, "**": { ...all, proxy: "upstream" } },
    max_body_size: "100mb",
    log: { type: "stdout", format: "json", level: "warn" },
  };
  // JSON is YAML.
  writeFileSync(join(folder, "config.yaml"), JSON.stringify(config));
  const parameters = [
    tool("verdaccio/bin/verdaccio"),
    "--listen",
    `127.0.0.1:${port}`,
    "--config",
    join(folder, "config.yaml"),
  ];
  const server = spawn(process.execPath, parameters, { env: userEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [server.stdout, server.stderr])
    stream.setEncoding("utf8").on("data", (text) => (log = (log + text).slice(-10_000)));
  const exited = new Promise((resolve) => server.once("exit", (code, signal) => resolve(code ?? signal)));
  const stop = async () => {
    server.kill("SIGTERM");
    await exited;
  };
  try {
    await until(async () => (await fetch(`${url}-/ping`)).ok, exited, 120);
  } catch (error) {
    await stop();
    throw new Error(`${error.message}\n${log}`, { cause: error });
  }
  const token = await addUser(url);
  const npmrc = join(folder, "npmrc");
  writeFileSync(npmrc, `registry=${url}\n//127.0.0.1:${port}/:_authToken=${token}\n`);
  return {
    url,
    stop,
    publish(tarball) {
      const options = {
        env: { ...userEnvironment(), NPM_CONFIG_USERCONFIG: npmrc },
        encoding: "utf8",
        timeout: 120_000,
      };
      // A provenance is made where a workflow publishes, from its identity.
      const { status, stderr } = spawnSync("npm", ["publish", "--provenance=false", tarball], options);
      if (status !== 0) throw new Error(`npm publish ${tarball} failed:\n${stderr}\n${log}`);
    },
  };
}

async function addUser(url) {
  const user = { name: "owner", password: "only-on-this-machine", type: "user" };
  const headers = { "content-type": "application/json" };
  const reply = await fetch(`${url}-/user/org.couchdb.user:owner`, {
    method: "PUT",
    headers,
    body: JSON.stringify(user),
  });
  const { token, error } = await reply.json();
  if (token === undefined) throw new Error(`verdaccio gives no token: ${error}`);
  return token;
}
