import { createSession, type SessionSettings } from "./create-session.ts";
import type { OnnxSession } from "./onnx-session.ts";
import { WebGpuSession } from "./webgpu-session.ts";
import { doubling } from "../../shared/doubling.ts";

export type { OnnxSession, SessionSettings };

/**
 * Opens the model at a path on a device. Blocks its thread.
 * @throws {Error} the device does not take it.
 */
export async function openSession(path: string, settings: SessionSettings): Promise<OnnxSession> {
  const session = await createSession(path, settings);
  if (settings.device === "webgpu") return new WebGpuSession(session, doubling(1, settings.maxBatchSize ?? 32));
  return Object.assign(session, { fixedSizes: [] });
}
