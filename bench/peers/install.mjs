/**
 * Installs what a comparison needs into bench/peers/artifacts: a virtual environment for each Python server, the Rust
 * programs, and the model's file. Each is done once; remove the folder to begin again. Needs python3 with venv, and cargo.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mlpGraph, mlpWeights } from "../../packages/sheaf-server/dist/runners/mlp-worker.js";
import { artifacts, cargoFolder, model, modelWeights, pythonFolder, virtualEnvironment } from "./paths.mjs";

const run = (file, args, options = {}) => execFileSync(file, args, { stdio: ["ignore", 2, 2], ...options });

/** @throws {Error} where a package cannot be installed or built. */
export function install(servers) {
  mkdirSync(`${artifacts}/logs`, { recursive: true });
  mkdirSync(`${artifacts}/requests`, { recursive: true });
  copyFileSync(mlpGraph, model);
  writeFileSync(modelWeights, mlpWeights());
  const programs = ["generator", ...servers.map(({ cargo }) => cargo).filter((name) => name !== undefined)];
  run("cargo", ["build", "--release", "--locked", "--quiet", ...programs.flatMap((name) => ["--package", name])], {
    cwd: cargoFolder,
    env: { ...process.env, CARGO_TARGET_DIR: `${artifacts}/target` },
  });
  for (const { python } of servers) if (python !== undefined) installPython(python);
}

/** A virtual environment with what `python/NAME.txt` names. @throws {Error} where a package cannot be installed. */
export function installPython(name) {
  const folder = virtualEnvironment(name);
  if (existsSync(`${folder}/installed`)) return;
  console.error(`Installing ${name} …`);
  rmSync(folder, { recursive: true, force: true });
  run("python3", ["-m", "venv", folder]);
  const requirements = ["--quiet", "-r", `${pythonFolder}/${name}.txt`];
  if (hasUv()) run("uv", ["pip", "install", "--python", `${folder}/bin/python`, ...requirements]);
  else run(`${folder}/bin/python`, ["-m", "pip", "install", ...requirements]);
  // Marks that all of it worked: an installation that was interrupted is done again.
  writeFileSync(`${folder}/installed.part`, "");
  renameSync(`${folder}/installed.part`, `${folder}/installed`);
}

/** uv takes seconds where pip takes minutes. */
const hasUv = () => spawnSync("uv", ["--version"]).status === 0;
