import type { CommandOptions } from "sheaf/node";

/** How the workers of a Python model are started, and where their output goes. */
export interface PythonSettings extends Pick<
  CommandOptions,
  "instances" | "niceness" | "loadTimeoutMs" | "recycleAfterBatches" | "prefetch" | "log"
> {
  /**
   * The name of its workers.
   * @default the file's name
   */
  readonly name?: string | undefined;
  /**
   * The interpreter: a path, or a name on PATH.
   * @default that of `.venv` or `venv` beside the file, else `python3`
   */
  readonly interpreter?: string | undefined;
  /**
   * Environment variables of the server's own that its models must not see.
   * @default none
   */
  readonly secrets?: readonly string[] | undefined;
}
