import { readFileSync } from "node:fs";
import {
  columnText,
  lengthOf,
  signatureOf,
  typedArrayOf,
  type TensorColumn,
  type WorkerColumn,
  type WorkerDeclaration,
} from "../declaration.ts";
import { maxPayloadBytes } from "../frame.ts";
import type { CheckedWorker } from "./checked-worker.ts";

/** One promise of the protocol. Rejects with the worker's actual behaviour; resolves with a remark, if there is one. */
export interface Case {
  readonly name: string;
  run(start: () => CheckedWorker): Promise<string | void>;
}

/** The promises of a ready worker; `items` makes as many valid items as asked. */
const whenReady = (
  name: string,
  use: (worker: CheckedWorker, items: (size: number) => unknown[]) => Promise<string | void>,
): Case => ({
  name,
  async run(start) {
    const worker = start();
    const declaration = await worker.ready();
    return use(worker, (size) => itemsOf(declaration, size));
  },
});

const ready: Case = {
  name: "says what it takes and returns, once it is ready",
  async run(start) {
    const { inputs, outputs, sample } = await start().ready();
    const columns = [inputs, outputs].map((each) => each.map(textOf).join(", ")).join(" → ");
    return sample.length > 0 ? columns : `${columns}; without a sample, so items are made up and a run may fail`;
  },
};

const batches: Case = {
  name: "answers batches of 1, 2, 7 and 64 items with one result each",
  async run(start) {
    const worker = start();
    const declaration = await worker.ready();
    let id = 0;
    for (const size of [1, 2, 7, 64]) {
      worker.run(++id, itemsOf(declaration, size));
      const results = await worker.resultsOf(id, size);
      if (results === undefined && declaration.sample.length > 0)
        throw new Error(`a batch of ${size} of its sample failed`);
      const failed = results?.find((result) => result instanceof Error);
      if (failed !== undefined && declaration.sample.length > 0)
        throw new Error(`its sample failed: ${failed.message}`);
    }
  },
};

const ahead: Case = whenReady("answers two batches that were sent at once, in their order", async (worker, items) => {
  worker.run(1, items(3));
  worker.run(2, items(2));
  await worker.resultsOf(1, 3);
  await worker.resultsOf(2, 2);
});

const cancelled: Case = whenReady(
  "answers a batch that was cancelled, and ignores the cancelling of one that it does not have",
  async (worker, items) => {
    worker.send({ type: "cancel", id: 4711 });
    worker.run(1, items(1));
    worker.run(2, items(1));
    worker.send({ type: "cancel", id: 2 });
    await worker.resultsOf(1, 1);
    await worker.resultsOf(2, 1);
    worker.send({ type: "cancel", id: 1 });
    worker.run(3, items(1));
    await worker.resultsOf(3, 1);
  },
);

const unknownFields: Case = whenReady("ignores fields of a header that it does not know", async (worker, items) => {
  worker.run(1, items(1), { novelty: { of: ["version", 1.5] } });
  await worker.resultsOf(1, 1);
});

const signals: Case = whenReady("goes on after SIGINT and SIGTERM", async (worker, items) => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.kill(worker.pid!, signal);
  worker.run(1, items(1));
  await worker.resultsOf(1, 1);
});

const close: Case = whenReady(
  "finishes the runs before `close`, sends `closed` and exits with 0",
  async (worker, items) => {
    worker.run(1, items(2));
    worker.send({ type: "close" });
    await worker.resultsOf(1, 2);
    const { header } = await worker.next();
    if (header.type !== "closed") throw new Error(`it sent "${header.type}" instead of "closed"`);
    await worker.ended(5000);
    if (worker.exitCode !== 0) throw new Error(`its exit code is ${worker.exitCode}`);
  },
);

const hangUps: readonly Case[] = [
  whenReady("ends when the pipe ends while it is idle", async (worker) => {
    worker.hangUp();
    await worker.ended();
  }),
  {
    name: "ends when the pipe ends while it loads",
    async run(start) {
      const worker = start();
      worker.hello();
      worker.hangUp();
      await worker.ended(worker.loadTimeoutMs);
    },
  },
  whenReady("ends when the pipe ends in the middle of a message", async (worker) => {
    worker.write(frameStart(100, 0));
    worker.hangUp();
    await worker.ended();
  }),
];

/** A fault of ours, after which the worker cannot know what follows. */
const endsAfter = (what: string, send: (worker: CheckedWorker) => void): Case =>
  whenReady(`ends after ${what}`, async (worker) => {
    send(worker);
    await worker.ended();
  });

const faults: readonly Case[] = [
  endsAfter("a frame that is over the bound", (worker) => worker.write(frameStart(8, maxPayloadBytes + 1))),
  endsAfter("a header that is not JSON", (worker) =>
    worker.write(Buffer.concat([frameStart(8, 0), Buffer.from("nonsense")])),
  ),
  endsAfter("a message of no known type", (worker) => worker.send({ type: "novelty" })),
  endsAfter("a second `hello`", (worker) => worker.hello()),
];

const otherVersion: Case = {
  name: "refuses a version of the protocol that it does not speak",
  async run(start) {
    const worker = start();
    worker.hello(2);
    for (let type: string | undefined = "warming"; type === "warming";) {
      type = (await worker.next(worker.loadTimeoutMs).catch(() => undefined))?.header.type;
      if (type === "ready") throw new Error("it is ready all the same");
    }
    await worker.ended(worker.loadTimeoutMs);
  },
};

const again: Case = {
  name: "declares the same when it is started again",
  async run(start) {
    const [first, second] = [signatureOf(await start().ready()), signatureOf(await start().ready())];
    if (first !== second) throw new Error(`first ${first}, then ${second}`);
  },
};

const descriptor: Case = whenReady(
  "does not hand its end of the pipe on to programs that it starts",
  async (worker) => {
    if (process.platform !== "linux") return "not looked at: only Linux shows it";
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/${worker.pid}/fdinfo/3`, "utf8"))?.[1];
    const closeOnExec = 0o2000000;
    if ((parseInt(flags ?? "0", 8) & closeOnExec) === 0) throw new Error("its file descriptor 3 is not close-on-exec");
    return undefined;
  },
);

const group: Case = whenReady(
  "leads a process group of its own, so that a kill ends its children too",
  async (worker) => {
    try {
      process.kill(-worker.pid!, 0);
    } catch {
      throw new Error("there is no such group");
    }
  },
);

const runTime: Case = whenReady("says how long a run took", async (worker, items) => {
  worker.run(1, items(1));
  let { header } = await worker.next();
  while (header.type === "answer") ({ header } = await worker.next());
  if (typeof header["runMs"] !== "number") throw new Error("without runMs, schedulers count the transport too");
});

export const cases: readonly Case[] = [
  ready,
  batches,
  ahead,
  cancelled,
  unknownFields,
  runTime,
  signals,
  close,
  descriptor,
  group,
  again,
  ...hangUps,
  ...faults,
  otherVersion,
];

/** Items of the sample in turn, or made up where there is none. */
function itemsOf({ inputs, sample }: WorkerDeclaration, size: number): unknown[] {
  return Array.from({ length: size }, (_, i) => (sample.length > 0 ? sample[i % sample.length] : madeUp(inputs, i)));
}

function madeUp(inputs: readonly WorkerColumn[], i: number): unknown {
  const values = inputs.map((column) =>
    column.kind === "tensor" ? zeros(column) : column.kind === "text" ? `Text ${i}` : i,
  );
  return inputs[0]!.name === undefined ? values[0] : Object.fromEntries(inputs.map(({ name }, c) => [name, values[c]]));
}

function zeros({ dtype, shape }: TensorColumn): unknown {
  const length = lengthOf(shape);
  const Elements = typedArrayOf[dtype];
  return new Elements(new ArrayBuffer(length * Elements.BYTES_PER_ELEMENT), 0, length);
}

const textOf = (column: WorkerColumn): string =>
  column.name === undefined ? columnText(column) : `${column.name}: ${columnText(column)}`;

function frameStart(headerBytes: number, payloadBytes: number): Buffer {
  const start = Buffer.alloc(8);
  start.writeUInt32LE(headerBytes, 0);
  start.writeUInt32LE(payloadBytes, 4);
  return start;
}
