import type { EncodingWorkerOptions } from "sheaf/internal/node";
import { workerProcess, workerThread } from "sheaf/node";
import { noThreadsBecause } from "../../runners/contract/devices.ts";
import type { ModelSpec } from "../../runners/contract/model-spec.ts";
import { samplerFor } from "../../runners/self-test/sample-items.ts";
import type { ModelDefinition } from "../contract/model-definition.ts";
import type { Settings } from "../../settings/settings.ts";
import { JsonDemand } from "../contract/json-demand.ts";
import { roleOf } from "../../settings/role.ts";

const jsonRowEncoderUrl = new URL("../codec/json-row-encoder.js", import.meta.url);

/** The function that starts workers, as isolated as the settings say. */
export const workersOf = ({ workerIsolation }: Settings): typeof workerThread | typeof workerProcess =>
  workerIsolation === "process" ? workerProcess : workerThread;

/** A model that runs in its own workers: the open ones, or WORKERS new instances of `spec.workerUrl`. */
export function definitionOf(spec: ModelSpec, settings: Settings): ModelDefinition {
  if ("executor" in spec) {
    const { executor, sample, ...described } = spec;
    // No items are made up for it: beyond what it declares, only its author knows its inputs.
    return { ...described, run: executor, warmUpItem: sample, settings: { workerIsolation: "process" } };
  }
  const { workerUrl, data, sample, ...described } = spec;
  const isolated = { ...settings, ...(noThreadsBecause(spec.device) && ({ workerIsolation: "process" } as const)) };
  const jsonDemand = new JsonDemand();
  const options: EncodingWorkerOptions = {
    instances: settings.workers,
    data,
    name: spec.name,
    niceness: 0,
    loadTimeoutMs: settings.loadTimeoutMs,
    recycleAfterBatches: settings.recycleAfterBatches,
    maxResultBytes: settings.maxReplyBytes,
    // A result is written into its reply and dropped, so it needs no memory of its own.
    resultRows: "view",
    // Encoded by the worker, which has the rows in its CPU cache, while the HTTP thread answers. Other processes than this one write
    // the replies of a fleet, and those with HTTP_PROCESSES.
    encodeRows:
      roleOf(settings) === "alone" && settings.httpProcesses === 1
        ? { module: jsonRowEncoderUrl, wanted: jsonDemand.isHigh }
        : undefined,
  };
  const run: ModelDefinition["run"] =
    roleOf(settings) === "gateway" ? noRun : workersOf(isolated)<never, unknown>(workerUrl, options);
  const { workerIsolation } = isolated;
  return {
    ...described,
    run,
    jsonDemand,
    warmUpItem: sample ?? samplerFor(spec.input)?.(0),
    settings: { workerIsolation },
  };
}

/** A gateway's stand-in for a model. */
export const noRun = (): never => {
  throw new Error("A gateway runs no model.");
};
