// NVIDIA's perf_analyzer. Its own package on PyPI needs a newer glibc than Debian 12 has; tritonclient's wheels up to 2.55
// carried it, and it loads the CUDA runtime's library although it asks no GPU.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { text } from "node:stream/consumers";
import { installPackages, pythonWithClients, skipWithoutPython, venv } from "./python.mjs";
import { absent } from "../../support/absent.mjs";

const packages = ["tritonclient==2.50.0", "nvidia-cuda-runtime-cu12==12.9.79"];
/** Beside the tests' own tritonclient, which is a newer one. */
const folder = `${venv}/perf-analyzer-2.50.0`;
const isLinux = process.platform === "linux" && process.arch === "x64";

/** For `test(name, { skip })`: false where it can run, else why not. On CI that is a failure. */
export const skipWithoutPerfAnalyzer =
  skipWithoutPython ||
  (isLinux && existsSync("/usr/lib/x86_64-linux-gnu/libb64.so.0d")
    ? false
    : absent("perf_analyzer runs on Debian on x64, and needs libb64; apt-get install libb64-0d"));

/** Runs it for ten minutes at most; resolves with its exit status and all that it printed. */
export async function perfAnalyzer(...words) {
  pythonWithClients();
  const command = `${folder}/bin/perf_analyzer`;
  if (!existsSync(command)) installPackages("--no-deps", "--target", folder, ...packages);
  const env = { ...process.env, LD_LIBRARY_PATH: `${folder}/nvidia/cuda_runtime/lib` };
  const child = spawn(command, words, { env, stdio: ["ignore", "pipe", "pipe"], timeout: 600_000 });
  const [output, errors, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { status, output: output + errors };
}
