import type { MessagePort } from "node:worker_threads";
import type { HostOptions } from "./host.ts";

const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));

/** The modules that worker threads and processes start with, beside this one. */
export const threadEntry: URL = new URL(`./thread-main${extension}`, import.meta.url);
export const processEntry: URL = new URL(`./process-main${extension}`, import.meta.url);

export interface ThreadData {
  readonly host: HostOptions;
  readonly port: MessagePort;
  /** Of one number, which is not 0 once the thread has loaded native code. */
  readonly native: Int32Array;
}
