import { cases } from "./cases.ts";
import { CheckedWorker, type CheckedCommand } from "./checked-worker.ts";

/** How long it may take for any step but the load. */
const patienceMs = 10_000;

/** What to check. */
export interface CheckOptions {
  readonly command: string;
  /** @default none */
  readonly args?: readonly string[] | undefined;
  /** @default the folder of this process */
  readonly cwd?: string | undefined;
  /**
   * Variables to set beside those of this process; `undefined` takes one away.
   * @default that of this process alone
   */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** @default none */
  readonly data?: unknown;
  /**
   * How long it may load. Milliseconds.
   * @default 600000
   */
  readonly loadTimeoutMs?: number | undefined;
}

/** One promise of the worker protocol. */
export interface WorkerCheck {
  /** The worker's duty, as a sentence. */
  readonly name: string;
  readonly ok: boolean;
  /** Why it failed, or a remark. */
  readonly detail: string | undefined;
}

/**
 * Starts a worker again and again and sends it every message and every fault of the worker protocol. Yields its
 * findings, one promise after the other; after the first, which says whether it starts at all, the others follow only if it does.
 */
export async function* checkWorker(options: CheckOptions): AsyncGenerator<WorkerCheck, void, undefined> {
  const { command, args = [], cwd, env = {}, data, loadTimeoutMs = 600_000 } = options;
  const checked: CheckedCommand = { command, args, cwd, env, data, loadTimeoutMs, patienceMs };
  for (const [i, { name, run }] of cases.entries()) {
    const started: CheckedWorker[] = [];
    const start = (): CheckedWorker => {
      const worker = new CheckedWorker(checked);
      started.push(worker);
      return worker;
    };
    let check: WorkerCheck;
    try {
      check = { name, ok: true, detail: (await run(start)) ?? undefined };
    } catch (error) {
      check = { name, ok: false, detail: (error as Error).message };
    } finally {
      for (const worker of started) await worker.kill();
    }
    yield check;
    if (i === 0 && !check.ok) return;
  }
}
