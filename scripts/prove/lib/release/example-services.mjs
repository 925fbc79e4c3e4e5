import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { startRedis } from "../../../../test/integration/lib/redis.mjs";
import { command as NATS_SERVER, startNats } from "../../../../test/support/nats-server.mjs";

/** What examples need beside npm packages, as their READMEs say: a Redis and a NATS server on their ports, and Python's packages. */
export async function startExampleServices() {
  const [redis, nats] = await Promise.all([startRedis(), startNats()]);
  return {
    stop: () => Promise.all([redis.close(), nats.stop()]),
    environmentOf: (copy) => ({
      REDIS_PORT: String(redis.port),
      NATS_SERVER,
      NATS_URL: nats.url,
      // Debian's python3-torch instead of 4 GB from PyPI.
      ...(basename(copy) === "pytorch" && { PYTHON: "/usr/bin/python3" }),
    }),
    /** Makes the virtual environment of an example in Python that needs packages. */
    prepare(copy) {
      if (basename(copy) === "pytorch" || !existsSync(join(copy, "requirements.txt"))) return;
      const options = { cwd: copy, stdio: ["ignore", "pipe", "pipe"], encoding: "utf8", timeout: 300_000 };
      execFileSync("python3", ["-m", "venv", ".venv"], options);
      execFileSync(".venv/bin/pip", ["install", "--quiet", "-r", "requirements.txt"], options);
    },
  };
}
