import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** What is installed, built and written here; git knows nothing of it. */
export const artifacts = here("artifacts");
export const model = here("artifacts/mlp.onnx");
/** The name that the model's file gives to its external data. */
export const modelWeights = here("artifacts/weights");
export const pythonFolder = here("python");
export const cargoFolder = here(".");
export const virtualEnvironment = (name) => here(`artifacts/${name}`);
export const python = (name) => here(`artifacts/${name}/bin/python`);
/** Where a virtual environment keeps its packages; `python3.11` stands in the path. */
export function sitePackages(name) {
  const [version] = readdirSync(`${virtualEnvironment(name)}/lib`);
  return `${virtualEnvironment(name)}/lib/${version}/site-packages`;
}
/** Where the Python that a virtual environment was made with keeps libpython. */
export function pythonLibraries(name) {
  const [, home] = /^home = (.*)$/m.exec(readFileSync(`${virtualEnvironment(name)}/pyvenv.cfg`, "utf8"));
  return resolve(home, "../lib");
}
export const binary = (name) => here(`artifacts/target/release/${name}`);
/** The one that our own server runs on: every server here has the same release. */
export const onnxRuntime = here("../../node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1");
export const sheafCommand = here("../../packages/sheaf-server/bin/sheaf.js");
