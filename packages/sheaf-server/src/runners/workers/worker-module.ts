import "../../shared/without-telemetry.ts";

const runners = new URL("..", import.meta.url);
const extension: string = import.meta.url.endsWith(".ts") ? "ts" : "js";

/** The worker module `name` below `runners/`, from source as from what is built of it. */
export function workerModule(name: string): URL {
  return new URL(`${name}.${extension}`, runners);
}
