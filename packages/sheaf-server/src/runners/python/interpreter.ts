import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";

const oldest = [3, 9] as const;
const answersWithinMs = 20_000;

/**
 * The Python that runs a file: `named`, else that of the virtual environment `.venv` or `venv` beside the file, else
 * `python3`.
 * @throws {Error} if it cannot be started or is too old; says what to do.
 */
export async function interpreterFor(file: string, named: string | undefined): Promise<string> {
  const interpreter = named ?? (await virtualEnvironment(dirname(resolve(file)))) ?? "python3";
  const [major = 0, minor = 0] = await versionOf(interpreter, named !== undefined);
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1]))
    throw new Error(`${interpreter} is Python ${major}.${minor}; ${oldest.join(".")} or newer is needed (PYTHON).`);
  return interpreter;
}

async function virtualEnvironment(folder: string): Promise<string | undefined> {
  for (const name of [".venv", "venv"]) {
    const path = resolve(folder, name, "bin/python");
    if ((await stat(path).catch(() => undefined))?.isFile() === true) return path;
  }
  return undefined;
}

async function versionOf(interpreter: string, isNamed: boolean): Promise<number[]> {
  const program = "import sys; print(*sys.version_info[:2])";
  try {
    // Isolated and without site packages, because only the version is needed.
    const { stdout } = await promisify(execFile)(interpreter, ["-I", "-S", "-c", program], {
      timeout: answersWithinMs,
    });
    return stdout.trim().split(" ").map(Number);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "there is no such program" : message.trim();
    const advice = isNamed
      ? "name the Python of your environment, such as .venv/bin/python"
      : `install Python ${oldest.join(".")} or newer (on Debian: apt-get install python3; on macOS: brew install python)`;
    throw new Error(`${interpreter} cannot be started (PYTHON): ${why}; ${advice}.`, { cause: error });
  }
}
