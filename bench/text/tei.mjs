import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { artifacts, binary } from "../peers/paths.mjs";

const release = "v1.9.3";
const repository = "https://github.com/huggingface/text-embeddings-inference";
const folder = `${artifacts}/tei`;
export const teiBinary = binary("text-embeddings-router");

const run = (file, args, options = {}) => execFileSync(file, args, { stdio: ["ignore", 2, 2], ...options });

/**
 * Clones and builds Text Embeddings Inference with its ONNX Runtime backend, which loads the library that all servers here
 * share. It is on no package registry. Needs git, cargo and the headers of OpenSSL; its own release profile takes a while.
 * @throws {Error} where it cannot be cloned or built.
 */
export function installTei() {
  if (existsSync(teiBinary)) return;
  console.error(`Installing TEI ${release} …`);
  if (!existsSync(folder)) {
    rmSync(`${folder}.part`, { recursive: true, force: true });
    run("git", ["clone", "--quiet", "--depth", "1", "--branch", release, repository, `${folder}.part`]);
    keepOrtOnly(`${folder}.part`);
    renameSync(`${folder}.part`, folder);
  }
  run("cargo", ["build", "--release", "--quiet", "--package", "text-embeddings-router"], {
    cwd: folder,
    env: { ...process.env, CARGO_TARGET_DIR: `${artifacts}/target` },
  });
}

/** Its other backends need forks of crates from repositories of their own, which cargo fetches even when it builds none. */
function keepOrtOnly(source) {
  edit(`${source}/Cargo.toml`, [
    [/\[patch\.crates-io\]\n(?:.+\n)*/, ""],
    [/^ {4}"backends\/(?:candle|python|grpc-client)",\n/gm, ""],
  ]);
  edit(`${source}/backends/Cargo.toml`, [
    [/^text-embeddings-backend-(?:candle|python) = .*\n/gm, ""],
    [/^[\w-]+ = \[.*text-embeddings-backend-(?:candle|python).*\]\n/gm, ""],
  ]);
  edit(`${source}/backends/ort/Cargo.toml`, [[/"download-binaries"/, '"load-dynamic"']]);
  edit(`${source}/router/Cargo.toml`, [
    [/^(?:insta|cudarc|intel-mkl-src) = \{.*\n/gm, ""],
    [/^(?:candle[\w-]*|python|metal|mkl|accelerate|(?:static|dynamic)-linking) = \[.*\n/gm, ""],
    [/^default = .*$/m, 'default = ["http", "ort"]'],
  ]);
  // The Rust that builds the other programs here, which refuses an older release of this crate.
  rmSync(`${source}/rust-toolchain.toml`);
  run("cargo", ["update", "--quiet", "--package", "metrics", "--precise", "0.23.1"], { cwd: source });
}

function edit(path, changes) {
  let text = readFileSync(path, "utf8");
  for (const [pattern, replacement] of changes) {
    const changed = text.replace(pattern, replacement);
    if (changed === text) throw new Error(`${path} of TEI ${release} has nothing like ${pattern}`);
    text = changed;
  }
  writeFileSync(path, text);
}
