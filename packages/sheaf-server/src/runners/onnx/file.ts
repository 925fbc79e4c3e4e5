import { stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { batchVerdict } from "../self-test/batch-verdict.ts";
import type { ModuleSpec, RunnerSettings, TensorSpec } from "../contract/model-spec.ts";
import type { OnnxData } from "./onnx-worker.ts";
import type { OnnxInspection, OnnxInspectionRequest } from "./onnx-inspection-worker.ts";
import { inspectionExecutor } from "../workers/inspection.ts";
import { workersOn } from "../workers/workers-on.ts";
import { itemLength } from "../tensors/item-length.ts";
import { shapeOf, type TensorItem } from "../tensors/tensor-item.ts";
import { workerModule } from "../workers/worker-module.ts";

/**
 * A model of a `.onnx` file on one device: its inputs and outputs, read from the file and tried out in a worker.
 * @throws {Error} naming the file: it is missing, is not an ONNX model, or the device does not take it.
 */
export async function onnxFileSpec(file: string, settings: RunnerSettings = {}): Promise<ModuleSpec> {
  const path = resolve(file);
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() !== true) throw new Error(`${file}: there is no such file.`);
  const { intraOpNumThreads = 1, device = "cpu", maxBatchSize } = settings;
  const session = { intraOpNumThreads, device };
  const inspection = await inspect({ path, maxBatchSize, ...session }, settings.signal);
  const { layout, selfTest, sample } = inspection;
  const verdict = selfTest === undefined ? {} : batchVerdict(selfTest, settings);
  const hasBatchAxis = layout.axis !== "whole";
  const isBare = hasBatchAxis && isFlatFloats(layout.inputs) && isFlatFloats(layout.outputs);
  const most = layout.axis === "batch" ? verdict.maxBatchSize : 1;
  const data: OnnxData = { path, layout, isBare, ...session, maxBatchSize: most ?? maxBatchSize };
  const [input] = layout.inputs;
  const [output] = layout.outputs;
  const hasFreeAxes = layout.inputs.some(({ shape }) => shape.includes(null));
  return {
    name: basename(path, ".onnx"),
    workerUrl: workerModule("onnx-worker", import.meta.url),
    data: device === "webgpu" ? { ...data, sample: sample as TensorItem | undefined } : data,
    input: isBare
      ? { kind: "floats", length: input!.shape[0]!, name: input!.name }
      : { kind: "tensors", tensors: layout.inputs, hasBatchAxis },
    output: isBare
      ? { kind: "vector", length: output!.shape[0]!, name: output!.name }
      : { kind: "tensors", tensors: layout.outputs, hasBatchAxis },
    ...verdict,
    maxBatchSize: most,
    groupKey: hasFreeAxes ? shapeKey(layout.inputs) : undefined,
    weigh: hasFreeAxes ? itemLength : undefined,
    sample: isBare && sample !== undefined ? (sample as TensorItem)[input!.name] : sample,
    note: noteOf(inspection, verdict.warning),
  };
}

async function inspect(request: OnnxInspectionRequest, signal: AbortSignal | undefined): Promise<OnnxInspection> {
  const { path } = request;
  const executor = inspectionExecutor(
    workersOn(request.device)<OnnxInspectionRequest, OnnxInspection>(
      workerModule("onnx-inspection-worker", import.meta.url),
      {
        name: path,
      },
    ),
    signal,
  );
  try {
    return await executor(request);
  } catch (error) {
    throw new Error(`${path} cannot be served: ${(error as Error).message}`, { cause: error });
  }
}

const isFlatFloats = ([only, ...others]: readonly TensorSpec[]): boolean =>
  only !== undefined &&
  others.length === 0 &&
  only.datatype === "FP32" &&
  only.shape.length === 1 &&
  only.shape[0] !== null;

/** Items share a run only when every tensor of theirs has the same shape. */
const shapeKey =
  (inputs: readonly TensorSpec[]) =>
  (item: unknown): string =>
    inputs.map((spec) => shapeOf(spec, item as TensorItem).join("x")).join(" ");

function noteOf({ layout, remark }: OnnxInspection, warning: string | undefined): string | undefined {
  const sentences: string[] = [];
  if (layout.reason !== undefined) {
    sentences.push(`It cannot be batched, as ${layout.reason}: items run one by one.`);
  }
  if (warning !== undefined) sentences.push(warning);
  if (remark !== undefined) sentences.push(`It was ${remark}`);
  return sentences.length === 0 ? undefined : sentences.join(" ");
}
