/**
 * Every server, set up as its documentation advises for one CPU model: the relu MLP 768 → 3072 → 768, one thread a run,
 * batches of at most 64, no line of log a request. Each says what it needs installed, how it is started on a port, and
 * which formats it takes.
 */
import { dirname } from "node:path";
import { jsonArray, kserveBinary, rawFloats } from "./formats.mjs";
import { binary, model, onnxRuntime, python, pythonFolder, sheafCommand } from "./paths.mjs";

const pythonEnvironment = { MLP_PATH: model, PYTHONPATH: pythonFolder, PYTHONDONTWRITEBYTECODE: "1" };

const inPython = (name, args, env = {}, file = python(name)) => ({ file, args, env: { ...pythonEnvironment, ...env } });

/** The command as npm installs it, on this Node. */
const sheafServe = (what, port, flags, env = {}) => ({
  file: sheafCommand,
  args: ["serve", what, "--port", port, "--max-batch-size", "64", ...flags],
  env: { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, ...env },
});

const sheafWith = (...flags) => ({
  start: (port) => sheafServe("mlp", port, flags),
  formats: {
    json: jsonArray("/infer", (reply) => reply.output),
    binary: kserveBinary("/v2/models/mlp/infer"),
  },
});

export const servers = {
  sheaf: sheafWith("--worker-threads", "1"),
  "sheaf-greedy": sheafWith("--worker-threads", "1", "--scheduler-strategy", "greedy"),
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
