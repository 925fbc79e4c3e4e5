/**
 * Every server, set up as its documentation advises for one CPU model: the relu MLP 768 → 3072 → 768, one thread a run,
 * batches of at most 64. Each says what it needs installed, how it is started on a port, and which formats it takes.
 */
import { jsonArray, kserveBinary, rawFloats } from "./formats.mjs";
import { binary, model, onnxRuntime, python, pythonFolder, sheafCommand } from "./paths.mjs";

const inPython = (name, args, env = {}) => ({
  file: python(name),
  args,
  env: { MLP_PATH: model, PYTHONPATH: pythonFolder, PYTHONDONTWRITEBYTECODE: "1", ...env },
});

export const servers = {
  sheaf: {
    start: (port) => ({
      file: process.execPath,
      args: [sheafCommand, "serve", "mlp", "--port", port, "--worker-threads", "1", "--max-batch-size", "64"],
    }),
    formats: {
      json: jsonArray("/infer", (reply) => reply.output),
      binary: kserveBinary("/v2/models/mlp/infer"),
    },
  },
  "batched-fn": {
    cargo: "batched-fn-server",
    start: (port) => ({ file: binary("batched-fn-server"), args: [`127.0.0.1:${port}`, model, onnxRuntime] }),
    formats: { json: jsonArray("/infer"), binary: rawFloats("/binary") },
  },
  mosec: {
    python: "mosec",
    start: (port) => inPython("mosec", ["mosec_server.py", "--address", "127.0.0.1", "--port", port]),
    formats: { json: jsonArray("/inference"), binary: rawFloats("/inference") },
  },
};
