import { natsFrontEnd } from "sheaf/adapters/nats";
import { elements } from "../../runners/tensors/elements.ts";
import { orAborted } from "../../shared/or-aborted.ts";
import type { LearnModel } from "../models/deployment.ts";
import type { ModelDefinition } from "../contract/model-definition.ts";
import { noRun } from "../models/worker-model.ts";
import type { FleetConnection } from "./connection.ts";
import type { FleetLog } from "./fleet-log.ts";
import { queueOf } from "./queue.ts";

type Description = Pick<ModelDefinition, "input" | "output">;

/**
 * Learns a model's inputs and outputs from the fleet's workers, as soon as one serves it, so that a gateway needs neither the file
 * nor its imports.
 */
export const announcedModels =
  (connection: FleetConnection, log: FleetLog): LearnModel =>
  async (name, settings, signal) => {
    await orAborted(connection.opened, signal);
    const frontEnd = natsFrontEnd(queueOf(name, settings, connection, log));
    try {
      await orAborted(frontEnd.ready(), signal);
      const [worker] = frontEnd.workers();
      const note = "Runs on the workers of the fleet, which say what it takes.";
      return { name, ...readDescription(name, worker?.serves), run: noRun, note };
    } finally {
      await frontEnd.close({ graceMs: 0 });
    }
  };

/** @throws {Error} if it is not the announcement of a Python model. */
function readDescription(name: string, announced: string | undefined): Description {
  const { input, output } = parsed(announced);
  if (isKnown(input, "floats") && isKnown(output, "vector")) return { input, output } as unknown as Description;
  throw new Error(
    `a worker of ${name} announces what is not a Python model; start gateways and workers with the same one`,
  );
}

type Fields = Readonly<Record<string, unknown>>;

function parsed(text = "{}"): Fields {
  try {
    return (JSON.parse(text) ?? {}) as Fields;
  } catch {
    return {};
  }
}

/** Whether a worker in another language can declare this kind; `flat` is the kind of a single array of floats. */
function isKnown(value: unknown, flat: "floats" | "vector"): boolean {
  const { kind, length, tensors } = (value ?? {}) as Fields;
  if (kind === flat) return isLength(length);
  if (kind === "tensors") return Array.isArray(tensors) && tensors.length > 0 && tensors.every(isTensor);
  return kind === "text" || kind === "json";
}

function isTensor(value: unknown): boolean {
  const { name, datatype, shape } = (value ?? {}) as Fields;
  const hasType = typeof datatype === "string" && (datatype === "BYTES" || Object.hasOwn(elements, datatype));
  return typeof name === "string" && name !== "" && hasType && Array.isArray(shape) && shape.every(isLength);
}

const isLength = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 1;
