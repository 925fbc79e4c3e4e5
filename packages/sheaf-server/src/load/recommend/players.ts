import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { play, type Play, type Played, type Recording } from "sheaf/internal/tuning";

type Calls = Recording["calls"];

/** Fewer calls are played sooner than a thread starts. */
const leastForThreads = 200_000;

/** Plays on as many threads as there are cores, a play at a time each. */
export class Players {
  readonly #threads: Worker[] = [];
  readonly #shared: WeakMap<Calls, Calls> = new WeakMap();
  readonly #onPlayed: () => void;

  constructor(onPlayed: () => void) {
    this.#onPlayed = onPlayed;
  }

  readonly play = async (plays: readonly Play[]): Promise<readonly Played[]> => {
    const played: Played[] = [];
    let next = 0;
    const playAll = async (one: (play: Play) => Promise<Played>): Promise<void> => {
      while (next < plays.length) {
        const at = next++;
        played[at] = await one(plays[at]!);
        this.#onPlayed();
        // A virtual clock leaves no turn of the event loop for signals and the progress bar.
        await new Promise(setImmediate);
      }
    };
    if (plays.reduce((sum, { calls }) => sum + calls.count, 0) < leastForThreads) await playAll(play);
    else {
      while (this.#threads.length < Math.min(availableParallelism(), plays.length))
        this.#threads.push(new Worker(new URL("./player-thread.js", import.meta.url), { env: {} }));
      await Promise.all(this.#threads.map((thread) => playAll((one) => this.#playOn(thread, one))));
    }
    return played;
  };

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }

  #playOn(thread: Worker, one: Play): Promise<Played> {
    return new Promise((resolve, reject) => {
      const onEnd = (): void => reject(new Error("a thread that played calls has ended"));
      thread.once("error", reject).once("exit", onEnd);
      thread.once("message", (played: Played) => {
        thread.off("error", reject).off("exit", onEnd);
        resolve(played);
      });
      thread.postMessage({ ...one, calls: this.#inSharedMemory(one.calls) });
    });
  }

  /** Not copied to each thread for each play. */
  #inSharedMemory(calls: Calls): Calls {
    const known = this.#shared.get(calls);
    if (known !== undefined) return known;
    const columns = Object.entries(calls).map(([name, column]) => [
      name,
      typeof column === "number" ? column : inShared(column),
    ]);
    const shared = Object.fromEntries(columns) as unknown as Calls;
    this.#shared.set(calls, shared);
    return shared;
  }
}

function inShared(column: Float64Array | Uint8Array | Int32Array): typeof column {
  const copy = new (column.constructor as Float64ArrayConstructor)(new SharedArrayBuffer(column.byteLength));
  copy.set(column);
  return copy;
}
