/**
 * Every server, set up as its documentation advises for one CPU model: the relu MLP 768 → 3072 → 768, one thread a run,
 * batches of at most 64, no line of log a request. Each says what it needs installed, how it is started on a port, and
 * which formats it takes.
 */
import { copyFileSync } from "node:fs";
import { dirname } from "node:path";
import { jsonArray, kserveBinary, kserveJson, rawFloats } from "./formats.mjs";
import {
  binary,
  model,
  onnxRuntime,
  python,
  pythonFolder,
  pythonLibraries,
  sheafCommand,
  sitePackages,
  virtualEnvironment,
} from "./paths.mjs";

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
  // The HTTP thread before the worker, which is not the default.
  "sheaf-python": {
    python: "sheaf",
    start: (port) => sheafServe("sheaf_mlp.py", port, ["--python", python("sheaf")], pythonEnvironment),
    formats: {
      json: jsonArray("/infer", (reply) => reply.output),
      binary: kserveBinary("/v2/models/sheaf_mlp/infer"),
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
  triton: {
    python: "triton",
    distribution: "nvidia-pytriton",
    contains: "Triton 2.51",
    start: (port) => {
      const packages = sitePackages("triton");
      const folder = `${packages}/pytriton/tritonserver`;
      // As pytriton does when it starts: the stub for this Python goes beside the backend.
      const [, minor] = /python(3\.\d+)/.exec(packages);
      const stub = "triton_python_backend_stub";
      copyFileSync(`${folder}/python_backend_stubs/${minor}/${stub}`, `${folder}/backends/python/${stub}`);
      const where = ["--model-repository", "triton", "--backend-directory", `${folder}/backends`];
      const only = [
        "--http-address",
        "127.0.0.1",
        "--http-port",
        port,
        "--allow-grpc",
        "false",
        "--allow-metrics",
        "false",
      ];
      return {
        file: `${folder}/bin/tritonserver`,
        args: [...where, ...only],
        env: {
          MLP_PATH: model,
          PATH: `${virtualEnvironment("triton")}/bin:${process.env.PATH}`,
          LD_LIBRARY_PATH: `${packages}/nvidia_pytriton.libs:${pythonLibraries("triton")}`,
        },
      };
    },
    formats: { json: kserveJson("/v2/models/mlp/infer"), binary: kserveBinary("/v2/models/mlp/infer") },
  },
  litserve: {
    python: "litserve",
    start: (port) => inPython("litserve", ["litserve_server.py", port]),
    formats: { json: jsonArray("/predict", (reply) => reply.output) },
  },
  mlserver: {
    python: "mlserver",
    start: (port) =>
      inPython(
        "mlserver",
        ["start", "mlserver_models"],
        {
          MLSERVER_HOST: "127.0.0.1",
          MLSERVER_HTTP_PORT: port,
          MLSERVER_GRPC_PORT: "0",
          MLSERVER_METRICS_PORT: "0",
          MLSERVER_DEBUG: "false",
        },
        `${virtualEnvironment("mlserver")}/bin/mlserver`,
      ),
    formats: { json: kserveJson("/v2/models/mlp/infer") },
  },
  bentoml: {
    python: "bentoml",
    start: (port) =>
      inPython("bentoml", [
        "-m",
        "bentoml",
        "serve",
        "bentoml_service:MlpService",
        "--quiet",
        "--host",
        "127.0.0.1",
        "--port",
        port,
      ]),
    formats: {
      json: jsonArray(
        "/infer",
        ([row]) => row,
        (array) => `{"batch":[${array}]}`,
      ),
    },
  },
  ray: {
    python: "ray",
    start: (port) => inPython("ray", ["ray_server.py", port]),
    formats: { json: jsonArray("/infer") },
  },
};
