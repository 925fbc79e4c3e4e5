import { isMainThread } from "node:worker_threads";
import { env, InferenceSession } from "./runtime.ts";
import { noThreadsBecause } from "../contract/devices.ts";

// Failures come as errors, with their text; the runtime would print them to stderr as well.
env.logLevel = "fatal";

/**
 * Microseconds for which a thread of a run spins when it has nothing to do, before it sleeps. A small model's operations follow
 * each other in less; its second thread would have to be woken for each. Longer spins, such as the runtime's own, would take
 * the core from the thread that answers.
 */
const spinUs = 20;

export interface SessionSettings {
  /** Threads of one run. Default 1: workers, not runs, use the cores. */
  readonly intraOpNumThreads?: number | undefined;
  /** `"cpu"`, `"cuda"`, `"cuda:1"` or `"webgpu"`. Default `"cpu"`. */
  readonly device?: string | undefined;
  /** The most items in a run, for which WebGPU prepares. Default 32. */
  readonly maxBatchSize?: number | undefined;
  /** The bytes that the file calls its external data `weights`. Default: what lies beside it. */
  readonly weights?: Uint8Array | undefined;
}

/** A session of ONNX Runtime on one device. Blocks its thread. @throws {Error} the device does not take the model. */
export async function createSession(
  path: string,
  { device = "cpu", intraOpNumThreads = 1, weights }: SessionSettings,
): Promise<InferenceSession> {
  const reason = noThreadsBecause(device);
  if (reason !== undefined && !isMainThread) {
    throw new Error(`it runs in worker processes only (WORKER_ISOLATION=process): ${reason}`);
  }
  const options: InferenceSession.SessionOptions = {
    executionProviders: [providerOf(device)],
    intraOpNumThreads,
    logSeverityLevel: 4,
    ...(weights === undefined ? {} : { externalData: [{ path: "weights", data: weights }] }),
    extra: { session: { intra_op: { allow_spinning: "1", spin_duration_us: String(spinUs) } } },
  };
  try {
    return await InferenceSession.create(path, options);
  } catch (error) {
    throw readable(error);
  }
}

function providerOf(device: string): InferenceSession.ExecutionProviderConfig {
  const [kind, index = "0"] = device.split(":");
  if (kind === "cuda") return { name: "cuda", deviceId: Number(index) };
  return kind === "webgpu" ? "webgpu" : "cpu";
}

/** The runtime says where in its sources it failed; the part that a user can change comes last. */
function readable(error: unknown): Error {
  const message = error instanceof Error ? error.message : String(error);
  const adapter = /Failed to get a WebGPU adapter:?\s*(.*)/u.exec(message)?.[1];
  if (adapter === undefined) return error instanceof Error ? error : new Error(message);
  return new Error(`no GPU with a Vulkan, Metal or Direct3D 12 driver was found (${adapter || "no adapter"})`);
}
