import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { onnxRuntime, python, pythonFolder, sheafCommand } from "../peers/paths.mjs";

const json = { "content-type": "application/json" };
const pythonHelpers = fileURLToPath(new URL("../../packages/sheaf/python", import.meta.url));

/** As OpenAI's API, of which every server here has the shape; vectors are as exact as float32 allows. */
const embeddings = (path, model) => ({
  path,
  tolerance: 1e-5,
  request: (input) => ({ headers: json, body: Buffer.from(JSON.stringify({ model, input })) }),
  output: (bytes) => JSON.parse(bytes.toString("utf8")).data.flatMap(({ embedding }) => embedding),
});

export const textEnvironment = (encoder) => ({
  ENCODER_FOLDER: encoder,
  PYTHONPATH: `${pythonFolder}:${pythonHelpers}`,
  PYTHONDONTWRITEBYTECODE: "1",
});

const sheaf = (command, encoder, flags = []) => ({
  start: (port) => ({
    file: command,
    args: ["serve", encoder, "--port", port, ...flags],
    env: { PATH: `${dirname(process.execPath)}:${process.env.PATH}` },
  }),
  formats: { json: embeddings("/v1/embeddings", "encoder") },
});

const infinityFlags =
  "v2 --engine optimum --device cpu --pooling-method mean --served-model-name encoder --host 127.0.0.1";

/**
 * Each with its defaults for one model and two cores. `base`: another version's checkout; `tei`: an installed
 * text-embeddings-router. `unit`: its vectors have length 1.
 */
export const textServers = (encoder, { base, tei }) => ({
  sheaf: sheaf(sheafCommand, encoder),
  "sheaf-greedy": sheaf(sheafCommand, encoder, ["--scheduler-strategy", "greedy"]),
  "sheaf-two-workers": sheaf(sheafCommand, encoder, ["--workers", "2"]),
  ...(base !== undefined && { base: sheaf(resolve(base, "packages/sheaf-server/bin/sheaf.js"), encoder) }),
  mosec: {
    python: "text",
    start: (port) => ({
      file: python("text"),
      // Its default would end the requests of lists after 3 s.
      args: ["mosec_text_server.py", "--address", "127.0.0.1", "--port", port, "--timeout", "120000"],
      env: textEnvironment(encoder),
    }),
    formats: { json: embeddings("/inference") },
  },
  tei: {
    start: (port) => ({
      file: tei,
      args: ["--model-id", encoder, "--pooling", "mean", "--hostname", "127.0.0.1", "--port", port],
      // For a build that loads ONNX Runtime when it starts: the one that all servers here share.
      env: { ORT_DYLIB_PATH: onnxRuntime },
    }),
    // Its own route, since its OpenAI route always makes vectors of length 1.
    formats: {
      json: {
        path: "/embed",
        tolerance: 1e-5,
        request: (inputs) => ({ headers: json, body: Buffer.from(JSON.stringify({ inputs, normalize: false })) }),
        output: (bytes) => JSON.parse(bytes.toString("utf8")).flat(),
      },
    },
  },
  infinity: {
    python: "infinity",
    unit: true,
    start: (port) => ({
      file: `${dirname(python("infinity"))}/infinity_emb`,
      args: [...infinityFlags.split(" "), "--model-id", encoder, "--port", port],
      // It writes its optimised model beside the other; no figures go out.
      env: { DO_NOT_TRACK: "1", HF_HUB_OFFLINE: "1", PYTHONDONTWRITEBYTECODE: "1" },
    }),
    formats: { json: embeddings("/embeddings", "encoder") },
  },
});
