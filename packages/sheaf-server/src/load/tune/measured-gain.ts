import type { Recommendation } from "sheaf/tuning";
import type { MeasuredCost, MeasuredPoint } from "sheaf/internal/tuning";
import { figures, shownMs } from "../../shared/terminal.ts";

/**
 * The gain behind a recommendation in plain words: `58 items in one run take 27 ms instead of 598 ms one by one
 * (22.1×, 95 % range 21.7× to 22.6×)`. Undefined where it does not rest on one, or no single item was measured.
 */
export function gainSentence(
  { table }: Pick<MeasuredCost, "table">,
  { reason, maxBatchSize }: { readonly reason: string } & Pick<Recommendation, "maxBatchSize">,
): string | undefined {
  if (reason !== "gains" && reason !== "no-fixed-part") return undefined;
  const single = table.find(([size]) => size === 1);
  const others = table.filter(([size]) => size > 1).toSorted(([a], [b]) => a - b);
  if (single === undefined || others.length === 0) return undefined;
  // The measured size next to the advised one.
  const away = ([size]: MeasuredPoint): number => Math.abs(Math.log(size / maxBatchSize));
  if (reason === "gains")
    return sentenceOf(
      single,
      others.reduce((next, point) => (away(point) < away(next) ? point : next)),
    );
  return sentenceOf(
    single,
    others.reduce((most, point) => (gainOf(single, point) > gainOf(single, most) ? point : most)),
  );
}

/** How far a gain may be off, as a share of it: both medians are off independently of each other. */
export const gainError = ([, , one = 0]: MeasuredPoint, [, , other = 0]: MeasuredPoint): number =>
  Math.hypot(one, other);

const gainOf = ([, singleMs]: MeasuredPoint, [size, runMs]: MeasuredPoint): number => (size * singleMs) / runMs;

function sentenceOf(single: MeasuredPoint, point: MeasuredPoint): string {
  const [size, runMs] = point;
  const gain = gainOf(single, point);
  const error = 1 + gainError(single, point);
  return (
    `${size} items in one run take ${shownMs(runMs)} instead of ${shownMs(size * single[1])} one by one ` +
    `(${figures(gain)}×, 95 % range ${figures(gain / error)}× to ${figures(gain * error)}×)`
  );
}
