import type { MetricFamily, MetricSample } from "sheaf/internal/metrics";

/** A process of the server and its own metrics. */
export interface ProcessFigures {
  readonly name: string;
  readonly families: readonly MetricFamily[];
}

/** Adds up the samples of the same name and labels. */
export function sumOf(lists: readonly (readonly MetricFamily[])[]): MetricFamily[] {
  const families = new Map<string, { readonly family: MetricFamily; readonly samples: Map<string, MetricSample> }>();
  for (const family of lists.flat()) {
    let sum = families.get(family.name);
    if (sum === undefined) families.set(family.name, (sum = { family, samples: new Map() }));
    for (const sample of family.samples) {
      const key = `${sample.suffix} ${JSON.stringify(sample.labels)}`;
      const value = (sum.samples.get(key)?.value ?? 0) + sample.value;
      sum.samples.set(key, { ...sample, value });
    }
  }
  return [...families.values()].map(({ family, samples }) => ({ ...family, samples: [...samples.values()] }));
}

/**
 * The metrics of all processes as those of one: CPU and memory add up, the start is the first, the event loop's delay the longest;
 * then each with the name of its process.
 */
export function ofProcesses(processes: readonly [ProcessFigures, ...ProcessFigures[]]): readonly MetricFamily[] {
  const [{ families: own }] = processes;
  if (processes.length === 1) return own;
  return own.flatMap((family, index) => {
    const samples = processes.map(({ name, families }) => ({
      labels: { process: name },
      value: families[index]!.samples[0]!.value,
    }));
    const values = samples.map(({ value }) => value);
    const { name, help } = family;
    const value = name.includes("start_time")
      ? Math.min(...values)
      : name.includes("delay")
        ? Math.max(...values)
        : values.reduce((sum, one) => sum + one, 0);
    const whole = { ...family, samples: [{ labels: {}, value }] };
    if (name.includes("start_time")) return [whole];
    const each = `sheaf_${name.replace(/^sheaf_/, "")}`.replace(/^sheaf_(process_)?/, "sheaf_process_");
    return [whole, { ...family, name: each, help: `${help} By process.`, samples }];
  });
}

/** A process' CPU time, in seconds. */
export const cpuSecondsOf = (families: readonly MetricFamily[]): number =>
  families.find(({ name }) => name === "process_cpu_seconds_total")?.samples[0]?.value ?? 0;
