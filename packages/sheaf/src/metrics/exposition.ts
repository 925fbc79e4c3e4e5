/** One sample of a family. A histogram's samples are `le` buckets plus sum and count. */
export interface MetricSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Appended to the family's name: `_bucket`, `_sum`, `_count`. Default none. */
  readonly suffix?: string | undefined;
}

/** A metric with all its samples, as Prometheus' text format groups them. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram" | "summary";
  readonly samples: readonly MetricSample[];
}

export const expositionContentType = "text/plain; version=0.0.4; charset=utf-8";

/** Prometheus' text format, version 0.0.4. Families without samples are left out. */
export function exposition(families: readonly MetricFamily[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, help, type, samples }) => {
      const lines = samples.map(
        ({ labels, value, suffix = "" }) => `${name}${suffix}${labelText(labels)} ${number(value)}`,
      );
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("\n")}\n`;
    })
    .join("");
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };
const escaped = (value: string): string => value.replaceAll(/[\\"\n]/g, (character) => escapes[character]!);

function number(value: number): string {
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}
