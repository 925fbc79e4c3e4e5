import type { Calibration, MeasuredPoint, Recommendation } from "sheaf/tuning";
import { figures, shownMs } from "./terminal.ts";

/** What was measured of one size beside single items. */
interface MeasuredGain {
  /** As a person says it: `58 items in one run take 27 ms instead of 598 ms one by one (22.1×, 95 % range 21.7× to 22.6×)`. */
  readonly sentence: string;
  /** Whether the whole range supports the recommendation. */
  readonly isSettled: boolean;
}

// As in `recommend`: a smaller gain is none.
const smallestGain = 1.1;

/** The gain behind a recommendation; undefined where the recommendation does not rest on one, or no single item was measured. */
export function measuredGain(
  { costModel: { table } }: Pick<Calibration, "costModel">,
  { reason, maxBatchSize }: Pick<Recommendation, "reason" | "maxBatchSize">,
): MeasuredGain | undefined {
  if (reason !== "gains" && reason !== "no-fixed-part") return undefined;
  const single = table.find(([size]) => size === 1);
  const others = table.filter(([size]) => size > 1);
  if (single === undefined || others.length === 0) return undefined;
  const gains = others.map((point) => gainOf(single, point)).toSorted((a, b) => a.size - b.size);
  if (reason === "no-fixed-part") {
    const best = gains.reduce((most, gain) => (gain.gain > most.gain ? gain : most));
    return { sentence: best.sentence, isSettled: best.high < smallestGain };
  }
  const advised = gains.findLast(({ size }) => size <= maxBatchSize) ?? gains[0]!;
  return { sentence: advised.sentence, isSettled: advised.low >= smallestGain };
}

/** The verdict as a person says it, then the inequality behind it; a range that does not support it is said first. */
export function verdictLines(
  about: string,
  calibration: Pick<Calibration, "costModel">,
  advice: Recommendation,
): string[] {
  const verdict = advice.verdict === "batch" ? "batch" : "DO NOT BATCH";
  const gain = measuredGain(calibration, advice);
  if (gain === undefined) return [`${about}: ${verdict}: ${advice.because}.`];
  const said = gain.isSettled ? `${verdict}:` : `not settled, as the range reaches across ${smallestGain}× (measure longer). So far ${verdict}:`; // prettier-ignore
  return [`${about}: ${said} ${gain.sentence}.`, `The inequality: ${advice.because}.`];
}

interface Gain {
  readonly size: number;
  readonly gain: number;
  readonly low: number;
  readonly high: number;
  readonly sentence: string;
}

function gainOf([, singleMs, singleError = 0]: MeasuredPoint, [size, runMs, runError = 0]: MeasuredPoint): Gain {
  const gain = (size * singleMs) / runMs;
  // Both medians are off independently of each other.
  const error = Math.hypot(singleError, runError);
  const [low, high] = [gain / (1 + error), gain * (1 + error)];
  const sentence =
    `${size} items in one run take ${shownMs(runMs)} instead of ${shownMs(size * singleMs)} one by one ` +
    `(${figures(gain)}×, 95 % range ${figures(low)}× to ${figures(high)}×)`;
  return { size, gain, low, high, sentence };
}
