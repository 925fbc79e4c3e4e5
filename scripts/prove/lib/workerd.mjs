import { spawn } from "node:child_process";
import { once } from "node:events";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../lib/files.mjs";

const entry = "scripts/prove/lib/workerd-worker.mjs";
const parts = ["index.js", "adapters/http.js", "shared/core.js", "shared/consume.js", "shared/apis.js"];

/** Starts workerd with scripts/prove/lib/workerd-worker.mjs and the build, unchanged. Returns its URL and how to end it. */
export async function startWorkerd(binary, folder) {
  const modules = [
    entry,
    ...["behaviours", "core-behaviours", "http-behaviours"].map((name) => `scripts/prove/lib/${name}.mjs`),
    ...parts.map((part) => `packages/sheaf/lib/${part}`),
  ];
  symlinkSync(root, join(folder, "root"));
  writeFileSync(
    join(folder, "workerd.capnp"),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = (
    compatibilityDate = "2026-01-01",
    modules = [${modules.map((file) => `(name = "${file}", esModule = embed "root/${file}")`).join(",\n")}],
  ))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);`,
  );
  const child = spawn(binary, ["serve", "workerd.capnp", "--control-fd=3"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  const ended = once(child, "close");
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (log = (log + text).slice(-5000)));
  const port = await new Promise((resolve, reject) => {
    let said = "";
    child.stdio[3].setEncoding("utf8").on("data", (text) => {
      const found = /"port":(\d+)/.exec((said += text))?.[1];
      if (found !== undefined) resolve(Number(found));
    });
    void ended.then(() => reject(new Error(`workerd ended: ${log}`)));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    log: () => log,
    async stop() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
