import { runOnDevice } from "./device-graph.ts";
import type { OnnxSession } from "./onnx-session.ts";
import { Tensor, type InferenceSession } from "./runtime.ts";
import { sizeFor } from "./fixed-sizes.ts";

type Tensors = InferenceSession.FeedsType;

/**
 * A session on WebGPU. Shaders are compiled on first use and depend on shapes, so a batch is padded to one of a few sizes by
 * repeating its last row, and the padding's results are cut off.
 */
export class WebGpuSession implements OnnxSession {
  readonly fixedSizes: readonly number[];
  readonly inputNames: InferenceSession["inputNames"];
  readonly outputNames: InferenceSession["outputNames"];
  readonly inputMetadata: InferenceSession["inputMetadata"];
  readonly outputMetadata: InferenceSession["outputMetadata"];
  readonly #session: InferenceSession;
  readonly #hasBatchAxis: boolean;

  constructor(session: InferenceSession, fixedSizes: readonly number[]) {
    this.#session = session;
    this.fixedSizes = fixedSizes;
    this.inputNames = session.inputNames;
    this.outputNames = session.outputNames;
    this.inputMetadata = session.inputMetadata;
    this.outputMetadata = session.outputMetadata;
    const tensors = [...session.inputMetadata, ...session.outputMetadata];
    this.#hasBatchAxis = tensors.every((tensor) => !tensor.isTensor || typeof tensor.shape[0] === "string");
  }

  async run(feeds: Tensors, fetches: readonly string[]): Promise<InferenceSession.ReturnType> {
    const count = Object.values(feeds)[0]?.dims[0] ?? 0;
    const size = this.#hasBatchAxis && count > 0 ? sizeFor(this.fixedSizes, count) : count;
    if (size === count) return this.#run(feeds, fetches);
    const outputs = await this.#run(
      mapped(feeds, (tensor) => filledUp(tensor, size)),
      fetches,
    );
    return mapped(outputs, (tensor) => cutOff(tensor, count));
  }

  release(): Promise<void> {
    return this.#session.release();
  }

  async #run(feeds: Tensors, fetches: readonly string[]): Promise<InferenceSession.ReturnType> {
    try {
      return await this.#session.run(feeds, fetches);
    } catch (error) {
      await endIfLost(error);
      throw error;
    }
  }
}

/**
 * Called after a failed run: a lost device (the driver was reset, or the GPU is gone) never works again in this process. So the
 * process ends, as in a crash, and its replacement opens the device again.
 */
async function endIfLost(error: unknown): Promise<void> {
  try {
    await runOnDevice("webgpu", () => undefined);
  } catch {
    const message = error instanceof Error ? error.message : String(error);
    setImmediate(() => {
      throw new Error(`The WebGPU device is lost: ${message}`, { cause: error });
    });
    // Its batch is answered by the end of the process.
    await new Promise(() => undefined);
  }
}

function mapped<Values extends Readonly<Record<string, Tensor>>>(tensors: Values, change: (tensor: Tensor) => Tensor) {
  return Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, change(tensor)]));
}

function filledUp({ type, data, dims }: Tensor, size: number): Tensor {
  const [count = 1, ...rest] = dims;
  const length = data.length / count;
  const shape = [size, ...rest];
  if (type === "string") {
    const rows = data as string[];
    const filling = Array.from({ length: size - count }, () => rows.slice(rows.length - length));
    return new Tensor("string", rows.concat(...filling), shape);
  }
  const values = data as Float32Array;
  const filled = new (values.constructor as Float32ArrayConstructor)(length * size);
  filled.set(values);
  for (let row = count; row < size; row++) filled.copyWithin(row * length, (count - 1) * length, count * length);
  return new Tensor(type, filled as never, shape);
}

function cutOff({ type, data, dims }: Tensor, count: number): Tensor {
  const [size = 1, ...rest] = dims;
  const length = (data.length / size) * count;
  const rows = type === "string" ? (data as string[]).slice(0, length) : (data as Float32Array).subarray(0, length);
  return new Tensor(type, rows, [count, ...rest]);
}
