import { inspectionExecutor } from "../workers/inspection.ts";
import type { ModuleSpec, RunnerSettings } from "../contract/model-spec.ts";
import { workerModule } from "../workers/worker-module.ts";
import { compareDevices } from "./compare-devices.ts";
import type { FoundDevice } from "./device-worker.ts";
import { devicesOf } from "../contract/devices.ts";
import { workersOn } from "../workers/workers-on.ts";

/** Describes a model on one device; throws where that device does not take it. */
type SpecOn = (device: string) => Promise<ModuleSpec>;

interface Placed {
  readonly spec: ModuleSpec;
  readonly device: string;
  readonly remark: string;
}

/**
 * A model on the first device of the setting that takes it, or on the best one with `auto`: its note begins with which, and
 * why not on the others.
 * @throws {Error} no device takes it: each is named with its reason.
 */
export async function placeModel(name: string, settings: RunnerSettings, specOn: SpecOn): Promise<ModuleSpec> {
  const devices = devicesOf(settings.device);
  const refused: string[] = [];
  const place = devices[0] === "auto" ? onBest(settings, specOn, refused) : onFirst(name, settings, specOn, refused);
  const { spec, device, remark } = await place;
  const sentence = `Runs on ${device}${remark}${refused.length === 0 ? "" : `; refused: ${refused.join("; ")}`}.`;
  return { ...spec, device, note: spec.note === undefined ? sentence : `${sentence} ${spec.note}` };
}

async function onFirst(name: string, settings: RunnerSettings, specOn: SpecOn, refused: string[]): Promise<Placed> {
  const devices = devicesOf(settings.device);
  // The CPU is always there: if the model fails on it alone, the model is at fault, not the device.
  if (devices.length === 1 && devices[0] === "cpu") return { spec: await specOn("cpu"), device: "cpu", remark: "" };
  for (const device of devices) {
    try {
      const { software } = await find(device, settings.signal);
      return { spec: await specOn(device), device, remark: software === undefined ? "" : ` in software (${software})` };
    } catch (error) {
      refused.push(`${device}: ${reasonOf(error)}`);
    }
  }
  throw new Error(`${name} cannot be served on INFERENCE_DEVICE ${settings.device}: ${refused.join("; ")}`);
}

/** A GPU that is not made of software, agrees with the CPU and is faster than it; else the CPU. */
async function onBest(settings: RunnerSettings, specOn: SpecOn, refused: string[]): Promise<Placed> {
  const cpu = await specOn("cpu");
  for (const device of ["cuda", "webgpu"]) {
    try {
      const { software } = await find(device, settings.signal);
      if (software !== undefined) throw new Error(`its only adapter computes in software (${software})`);
      const spec = await specOn(device);
      const gain = await compareDevices(spec, cpu, { ...settings, device });
      return { spec, device, remark: ` (${gain})` };
    } catch (error) {
      refused.push(`${device}: ${reasonOf(error)}`);
    }
  }
  return { spec: cpu, device: "cpu", remark: "" };
}

/** Opens the device, away from the thread and, where need be, the process that answers. */
async function find(device: string, signal: AbortSignal | undefined): Promise<FoundDevice> {
  if (device === "cpu") return {};
  const options = { name: device } as const;
  const finder = workersOn(device)<string, FoundDevice>(workerModule("device-worker", import.meta.url), options);
  return inspectionExecutor(finder, signal)(device);
}

/** The error's text, without the name of the model before it. */
function reasonOf(error: unknown): string {
  return (error as Error).message.replace(/^.* cannot be served: /u, "").replace(/\.$/u, "");
}
