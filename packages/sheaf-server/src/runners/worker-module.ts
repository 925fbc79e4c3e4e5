import "../shared/without-telemetry.ts";

const extension: string = import.meta.url.endsWith(".ts") ? "ts" : "js";

/** The worker module `name` below this folder, from source or from the build. */
export function workerModule(name: string): URL {
  return new URL(`./${name}.${extension}`, import.meta.url);
}
