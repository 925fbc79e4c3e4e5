import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const server = new URL("../../../packages/sheaf-server/", import.meta.url);
const entry = fileURLToPath(new URL("dist/cli/main.js", server));

/** Starts the built server on a free port, as users run it; resolves with its URL once it is ready. */
export const serve = async (t, ...words) => (await start(t, "serve", ...words)).url;

/** The same with gRPC on a free port too; resolves with both addresses. */
export const serveWithGrpc = (t, ...words) => start(t, "serve", ...words, "--grpc-port", "0");

/** The same for the proxy before an API. */
export const proxy = async (t, upstream, ...words) => (await start(t, "proxy", "--upstream", upstream, ...words)).url;

async function start(t, command, ...words) {
  const child = spawn(process.execPath, [entry, command, ...words, "--port", "0"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "close");
  t.after(async () => {
    child.kill("SIGTERM");
    await ended;
  });
  let output = "";
  const ready = new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
        const url = /listening on (http:\/\/[^"]+)/.exec(output)?.[1];
        const grpcAddress = /gRPC listening on ([^"]+)/.exec(output)?.[1];
        if (url !== undefined && output.includes('"msg":"ready"')) resolve({ url, grpcAddress });
      });
    }
    void ended.then(([code]) => reject(new Error(`sheaf ${command} ended with ${code}: ${output}`)));
  });
  return ready;
}
