import { natsWorker, type NatsWorker } from "sheaf/adapters/nats";
import { withInsideOf, type NatsQueueOptions, type WorkerBatcher } from "sheaf/internal/nats";
import { continuedTraces } from "../../observe/tracing.ts";
import type { FleetPart } from "../contract/fleet-part.ts";
import type { ServedModel } from "../models/served-model.ts";
import type { FleetConnection } from "./connection.ts";
import { descriptionOf } from "./queue.ts";
import { partsOf } from "./sender-tag.ts";

/** The worker's part of a model: runs items of the queue while the model is ready. */
export class WorkerPart implements FleetPart {
  readonly ready: Promise<void>;
  readonly worker: NatsWorker;
  readonly #model: ServedModel;
  readonly #connection: FleetConnection;

  constructor(model: ServedModel, connection: FleetConnection, queue: NatsQueueOptions) {
    this.#model = model;
    this.#connection = connection;
    const { definition } = model;
    this.worker = natsWorker(this.#batcher(), {
      ...queue,
      serves: descriptionOf(definition),
      version: definition.version,
      isServing: () => model.ownState === "ready",
      isIsolated: model.workers !== undefined && model.settings.workerIsolation === "process",
    });
    this.ready = this.worker.ready();
  }

  get unavailableReason(): string | undefined {
    // The queue matters only once the model is ready.
    if (this.#model.ownState !== "ready") return undefined;
    return this.#connection.unavailableReason ?? this.worker.unavailableReason;
  }

  /** The model's batcher for items of the queue: each item continues the trace that came with it and is charged to its sender. */
  #batcher(): WorkerBatcher<unknown, unknown> {
    const model = this.#model;
    const { batcher, name } = model;
    const { capacity, subscribe } = batcher;
    const continueTrace = continuedTraces(name, "nats");
    return withInsideOf(batcher, {
      capacity,
      subscribe,
      get pending() {
        return batcher.pending;
      },
      ready: async () => {
        await batcher.ready();
        await this.#connection.opened;
      },
      detailed: (item, options = {}) => {
        const { sender, traceparent } = partsOf(options.tag);
        return continueTrace(traceparent, () =>
          model.runItem(item, { ...options, tag: traceparent, sender: sender ?? {} }),
        );
      },
    } satisfies WorkerBatcher<unknown, unknown>);
  }
}
