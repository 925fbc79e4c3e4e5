import "../../shared/without-telemetry.ts";

/** The worker module `name` beside the module `from` (its `import.meta.url`), from source or from the build. */
export function workerModule(name: string, from: string): URL {
  return new URL(`${name}.${from.endsWith(".ts") ? "ts" : "js"}`, from);
}
