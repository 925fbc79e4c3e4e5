import { selfTest, type SelfTest } from "sheaf/models";
import { defineWorker, type WorkerDefinition } from "sheaf/node";
import { layoutOf, type OnnxLayout } from "./layout.ts";
import { runOnnx, type LoadedOnnx } from "./onnx-worker.ts";
import { openSession, type OnnxSession, type SessionSettings } from "./session.ts";
import { comparable } from "../tensors/comparable.ts";
import { probeItems } from "../self-test/probe-items.ts";

export interface OnnxInspectionRequest extends SessionSettings {
  readonly path: string;
}

export interface OnnxInspection {
  readonly layout: OnnxLayout;
  /** An item that ran; none where the model took none of ours. */
  readonly sample?: unknown;
  /** None where items cannot share a run. */
  readonly selfTest?: SelfTest | undefined;
  /** The open questions, in words. */
  readonly remark?: string | undefined;
}

/** Opens the model beside the HTTP thread, which neither loading nor runs may block. */
async function inspect({ path, ...settings }: OnnxInspectionRequest): Promise<OnnxInspection> {
  const session = await openSession(path, settings);
  try {
    const layout = layoutOf(session.inputMetadata, session.outputMetadata);
    return await tryOut(session, layout, settings.maxBatchSize);
  } finally {
    await session.release();
  }
}

async function tryOut(session: OnnxSession, layout: OnnxLayout, maxBatchSize?: number): Promise<OnnxInspection> {
  const model: LoadedOnnx = { session, layout, isBare: false };
  const { items, neighbours } = probeItems(layout.inputs, session.inputMetadata, layout.axis === "whole" ? 0 : 1);
  try {
    await runOnnx(items.slice(0, 1), model);
  } catch (error) {
    return { layout, remark: `not tried out, as it does not take a made-up input: ${messageOf(error)}` };
  }
  const [sample] = items;
  if (layout.axis !== "batch") return { layout, sample };
  try {
    const run = async (batch: readonly unknown[]): Promise<readonly unknown[]> =>
      comparable(await runOnnx(batch, model), layout.outputs);
    return { layout, sample, selfTest: await selfTest(run, items, { maxBatchSize, neighbours }) };
  } catch (error) {
    const reason = `it fails for two items at once: ${messageOf(error)}`;
    return { layout: { ...layout, axis: "one-row", reason }, sample };
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const worker: WorkerDefinition<OnnxInspectionRequest, OnnxInspection | Error> = defineWorker({
  // An error of the model is an answer, not a crash of the batch.
  run: (requests: OnnxInspectionRequest[]) =>
    Promise.all(requests.map((request) => inspect(request).catch((error: unknown) => new Error(messageOf(error))))),
});
export default worker;
