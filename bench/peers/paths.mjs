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
export const binary = (name) => here(`artifacts/target/release/${name}`);
/** The one that our own server runs on: every server here has the same release. */
export const onnxRuntime = here("../../node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1");
export const sheafCommand = here("../../packages/sheaf-server/bin/sheaf.js");
