import { InvalidArgumentError, type Command } from "commander";
import type { Scaling } from "sheaf/internal/tuning";
import { UsageError } from "../../shared/failure.ts";
import { listOf, parseDurationMs } from "./command.ts";

/** The flags of workers that come and go. */
export interface ScaleOptions {
  readonly scale?: readonly NamedScaling[];
  readonly startUp: number;
}

/** A way to scale, with its name in tables. */
export interface NamedScaling {
  readonly name: string;
  readonly scaling: Pick<Scaling, "by" | "target">;
}

const ways = ["slots-needed", "queue", "cpu"] as const;

export const withScaling = (command: Command): Command =>
  command
    .option(
      "--scale <names>",
      `workers come and go, --slots each, by one or more of ${ways.join(", ")}; queue:20 is 20 waiting items a worker, cpu:0.6 a busy share`,
      listOf(wayOf),
    )
    .option(
      "--start-up <time>",
      "with --scale: from the decision until a new worker takes batches",
      parseDurationMs,
      30_000,
    );

/** Ways to scale as the flags name them; undefined without `--scale`. @throws {UsageError} for a flag that needs it. */
export function scalingsOf(command: Command): readonly (NamedScaling & { readonly scaling: Scaling })[] | undefined {
  const { scale, startUp } = command.opts<ScaleOptions>();
  if (scale === undefined && command.getOptionValueSource("startUp") === "cli")
    throw new UsageError("--start-up needs --scale.");
  return scale?.map(({ name, scaling }) => ({ name, scaling: { ...scaling, startUpMs: startUp } }));
}

/** `queue` or `queue:20`. */
function wayOf(text: string): NamedScaling {
  const [name, target, ...rest] = text.split(":");
  const by = ways.find((way) => way === name);
  const value = target === undefined ? undefined : Number(target);
  if (by !== undefined && (value === undefined || (value > 0 && value < Infinity)) && rest.length === 0)
    return { name: text, scaling: { by, target: value } };
  throw new InvalidArgumentError(`It must be ${ways.join(", ")}, or one with its target, such as queue:20.`);
}
