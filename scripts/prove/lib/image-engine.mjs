import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const needed = ["buildah", "runc", "mmdebstrap"];

/**
 * Builds images with buildah, in a folder of its own: no daemon, no registry. A RUN step is isolated by chroot, so it
 * works inside a container too.
 */
export function openEngine(folder) {
  const missing = needed.filter((command) => spawnSync("which", [command]).status !== 0);
  assert.deepEqual(missing, [], `apt-get install ${needed.join(" ")}`);
  assert.equal(process.getuid(), 0, "buildah and runc need root here");
  const global = (driver) => [
    "--storage-driver",
    driver,
    "--root",
    join(folder, "images"),
    "--runroot",
    join(folder, "run"),
  ];
  // Where the folder is on an overlay itself, images are copied whole instead.
  const driver = spawnSync("buildah", [...global("overlay"), "images"]).status === 0 ? "overlay" : "vfs";
  const buildah = (...parameters) => command("buildah", [...global(driver), ...parameters]).trim();
  const volumes = buildVolumes(folder);

  return {
    driver,

    /** An image under the name of a base image: Debian's smallest system, with a Node and this machine's npm. */
    makeBase(name, node) {
      const system = join(folder, "base.tar");
      const hook = join(folder, "add-node.sh");
      writeFileSync(hook, addNode(node), { mode: 0o755 });
      command("mmdebstrap", [
        "--quiet",
        "--variant=minbase",
        "--include=libatomic1", // Node 26 is linked to it; the real base image has it, too
        `--customize-hook=${hook} "$1"`,
        "bookworm",
        system,
        "http://deb.debian.org/debian",
      ]);
      const container = buildah("from", "scratch");
      buildah("add", "--quiet", container, system, "/");
      buildah("config", "--env", `PATH=${path}`, "--cmd", '["node"]', container);
      buildah("commit", "--quiet", "--format", "docker", "--rm", container, name);
    },

    /** Builds a Dockerfile. The format matters: that of OCI has no health check. */
    build(file, context, tag) {
      const parameters = ["--format", "docker", "--isolation", "chroot", "--pull-never", ...volumes];
      return buildah("bud", ...parameters, "--file", file, "--tag", tag, context);
    },

    /** What the image says of itself, and the folder that holds its files. */
    open(tag) {
      const container = buildah("from", "--pull-never", tag);
      const { config } = JSON.parse(buildah("inspect", "--type", "container", container)).Docker;
      return { config, root: buildah("mount", container) };
    },

    /** Nothing of it stays mounted, or its folder could not be removed. */
    close() {
      buildah("umount", "--all");
      buildah("rm", "--all");
    },
  };
}

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** As in node:20-slim: Node and npm in /usr/local, and the user `node` with the number 1000. */
function addNode(node) {
  const npm = join(dirname(realpathSync(process.execPath)), "../lib/node_modules/npm");
  assert.ok(existsSync(npm), `npm is not beside Node: ${npm}`);
  return `#!/bin/sh
set -eu
install -D ${realpathSync(node)} "$1/usr/local/bin/node"
mkdir -p "$1/usr/local/lib/node_modules"
cp -R ${npm} "$1/usr/local/lib/node_modules/"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$1/usr/local/bin/npm"
chroot "$1" groupadd --gid 1000 node
chroot "$1" useradd --uid 1000 --gid node --create-home node
`;
}

/**
 * What a RUN step sees and the image does not keep: npm's cache, and the certificates of this machine where it has its own,
 * for npm and pip.
 */
function buildVolumes(folder) {
  const cache = command("npm", ["config", "get", "cache"]).trim();
  mkdirSync(cache, { recursive: true });
  const volumes = [`${cache}:/root/.npm`];
  const certificates = process.env.NODE_EXTRA_CA_CERTS;
  if (certificates !== undefined) {
    const given = join(folder, "build-settings");
    mkdirSync(given);
    writeFileSync(join(given, "npmrc"), "cafile=/run/build/ca.crt\n");
    writeFileSync(join(given, "pip.conf"), "[global]\ncert = /run/build/ca.crt\n");
    volumes.push(`${realpathSync(certificates)}:/run/build/ca.crt:ro`);
    volumes.push(`${given}/npmrc:/usr/local/etc/npmrc:ro`, `${given}/pip.conf:/etc/pip.conf:ro`);
    chmodSync(given, 0o755);
  }
  return volumes.flatMap((volume) => ["--volume", volume]);
}

/** Runs a command to its end, for twenty minutes at most, and returns what it prints. */
export function command(name, parameters, options = {}) {
  const { status, signal, stdout, stderr } = spawnSync(name, parameters, {
    encoding: "utf8",
    timeout: 1_200_000,
    maxBuffer: 64 << 20,
    ...options,
  });
  if (status !== 0)
    throw new Error(
      `${name} ${parameters.join(" ")} ended with ${signal ?? status}:\n${`${stdout}${stderr}`.slice(-4000)}`,
    );
  return stdout;
}
