import { env, InferenceSession } from "./runtime.ts";
import { devicesOf } from "./devices.ts";

// Failures come as errors, with their text; the runtime would print them to stderr as well.
env.logLevel = "fatal";

export interface SessionSettings {
  /** Threads of one run. Default 1: workers, not runs, use the cores. */
  readonly intraOpNumThreads?: number | undefined;
  /** `"cpu"`, `"cuda"`, `"cuda:1"`, or several with commas, tried in turn. Default `"cpu"`. */
  readonly device?: string | undefined;
}

export interface OpenSession {
  readonly session: InferenceSession;
  /** The device that serves. */
  readonly device: string;
  /** Devices that were tried first, each with the reason why it does not serve. */
  readonly refused: readonly string[];
}

/**
 * Opens a model (a path, or an `.onnx` file's bytes) on the first of the devices that takes it. Blocks its thread.
 * @throws {Error} no device takes it: each is named with its reason.
 */
export async function openSession(model: string | Uint8Array, settings: SessionSettings): Promise<OpenSession> {
  const refused: string[] = [];
  for (const device of devicesOf(settings.device)) {
    try {
      const options: InferenceSession.SessionOptions = {
        executionProviders: [providerOf(device)],
        intraOpNumThreads: settings.intraOpNumThreads ?? 1,
        logSeverityLevel: 4,
        // Threads of a run that wait for each other must not take a core from the thread that answers by spinning.
        extra: { session: { intra_op: { allow_spinning: "0" } } },
      };
      const session =
        typeof model === "string"
          ? await InferenceSession.create(model, options)
          : await InferenceSession.create(model, options);
      return { session, device, refused };
    } catch (error) {
      refused.push(`${device}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new Error(refused.join("; "));
}

function providerOf(device: string): InferenceSession.ExecutionProviderConfig {
  const [kind, index = "0"] = device.split(":");
  return kind === "cuda" ? { name: "cuda", deviceId: Number(index) } : "cpu";
}
