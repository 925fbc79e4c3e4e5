import { defineWorker, type WorkerDefinition } from "sheaf/node";
import type { OnnxLayout } from "./layout.ts";
import { openSession, type OnnxSession, type SessionSettings } from "./session.ts";
import type { TensorItem } from "../tensors/tensor-item.ts";
import { cutRows, joinItems } from "./tensor-rows.ts";

export interface OnnxData extends SessionSettings {
  readonly path: string;
  readonly layout: OnnxLayout;
  /** Items and results are bare Float32Arrays: the model has one flat float input and one flat float output. */
  readonly isBare: boolean;
  /** An item that the model takes, as tensors by name, where WebGPU is to compile for it. */
  readonly sample?: TensorItem | undefined;
}

export interface LoadedOnnx {
  readonly session: OnnxSession;
  readonly layout: OnnxLayout;
  readonly isBare: boolean;
  readonly sample?: TensorItem | undefined;
}

export async function loadOnnx({ path, layout, isBare, sample, ...settings }: OnnxData): Promise<LoadedOnnx> {
  return { session: await openSession(path, settings), layout, isBare, sample };
}

export async function runOnnx(items: readonly unknown[], model: LoadedOnnx): Promise<unknown[]> {
  const { layout, isBare } = model;
  const [input] = layout.inputs;
  const [output] = layout.outputs;
  const named = isBare ? items.map((item): TensorItem => ({ [input!.name]: item })) : (items as TensorItem[]);
  const results = await runTensors(named, model);
  return isBare ? results.map((result) => result[output!.name]) : results;
}

/** All items in one run where the model has a batch axis, else one run an item. */
async function runTensors(items: readonly TensorItem[], model: LoadedOnnx): Promise<TensorItem[]> {
  if (model.layout.axis === "batch") return runOnce(items, model);
  const results: TensorItem[] = [];
  for (const item of items) results.push(...(await runOnce([item], model)));
  return results;
}

async function runOnce(items: readonly TensorItem[], { session, layout }: LoadedOnnx): Promise<TensorItem[]> {
  const hasBatchAxis = layout.axis !== "whole";
  const feeds = Object.fromEntries(layout.inputs.map((spec) => [spec.name, joinItems(spec, items, hasBatchAxis)]));
  const outputs = await session.run(
    feeds,
    layout.outputs.map(({ name }) => name),
  );
  const results = items.map((): TensorItem => ({}));
  for (const spec of layout.outputs) cutRows(spec, outputs[spec.name]!, results, hasBatchAxis);
  return results;
}

async function warmUpOnnx(model: LoadedOnnx): Promise<void> {
  const { session, sample } = model;
  if (sample === undefined) return;
  for (const size of session.fixedSizes) await runTensors(new Array<TensorItem>(size).fill(sample), model);
}

const worker: WorkerDefinition<unknown, unknown, OnnxData> = defineWorker({
  load: loadOnnx,
  warmUp: warmUpOnnx,
  run: runOnnx,
  unload: ({ session }: LoadedOnnx) => session.release(),
});
export default worker;
