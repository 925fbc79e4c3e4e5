import { median, table } from "../lib/machine.mjs";
import { burstRates, keptUp } from "./drives.mjs";

/** The rates of the targets. */
const comparedRates = [300, 600, 1000, 1500, 2000];

/** A comparison as Markdown: what was run, the table, latency by rate, and the ratios to our own server. */
export function reportOf(figures) {
  const { runs, plan } = figures;
  const names = [...new Set(runs.map(({ server }) => server))];
  const of = (server) => runs.filter((run) => run.server === server);
  const sections = [
    `# ${figures.title}`,
    `\`\`\`sh\n${figures.command}\n\`\`\``,
    `${figures.machine}; ${figures.startedAt.slice(0, 10)}. The generator and the server share the cores; medians of ${plan.rounds} ${plan.rounds === 1 ? "round" : "rounds"} of ` +
      `${plan.seconds} s each. ${disturbance(runs)}`,
    Object.entries(figures.versions)
      .map(([name, version]) => `- ${name}: ${version}`)
      .join("\n"),
    ...runs
      .filter(({ failure }) => failure !== undefined)
      .map(({ server, failure }) => `**${server} failed**: ${failure.split("\n")[0]}`),
    overview(names, of, plan),
  ];
  for (const drive of Object.keys(latencyTitles))
    if (plan.drives.includes(drive)) sections.push(...latencies(drive, names, of));
  const [own] = names.filter((name) => name.startsWith("sheaf"));
  const peers = names.filter((name) => !name.startsWith("sheaf"));
  if (own !== undefined && peers.length > 0) sections.push(...ratios(own, peers, of, plan));
  return `${sections.join("\n\n")}\n`;
}

const text = (values, digits) => (values.length === 0 ? "–" : median(values).toFixed(digits));
const shared = (some, others) => some.filter((one) => others.includes(one));
const present = (values) => values.filter((value) => value !== undefined);

function overview(names, of, { rates, drives }) {
  const shown = drives.includes("open") ? shared(rates, [300, 1000, 2000]) : [];
  const p99At = (run, rate) =>
    run.open?.[rate] !== undefined && keptUp(run.open[rate]) ? run.open[rate].latencyMs.p99 : undefined;
  const columns = [
    ["closed JSON, req/s", (run) => run.closed?.json?.achievedPerS, 0],
    ["p99 ms there", (run) => run.closed?.json?.latencyMs.p99, 0],
    ["CPU s per 1,000", (run) => run.closed?.json?.cpuSecondsPer1000, 2],
    ["closed binary, req/s", (run) => run.closed?.binary?.achievedPerS, 0],
    ["p99 ms there", (run) => run.closed?.binary?.latencyMs.p99, 0],
    ["CPU s per 1,000", (run) => run.closed?.binary?.cpuSecondsPer1000, 2],
    ...shown.map((rate) => [`p99 ms at ${rate}/s`, (run) => p99At(run, rate), 1]),
    ["goodput at 4 ×", (run) => run.overload?.goodput, 2],
    ["p99 ms there", (run) => run.overload?.latencyMs.p99, 0],
    ["lone p50 ms", (run) => run.lone?.latencyMs.p50, 1],
    ["its run p50 ms", (run) => run.lone?.runMs?.p50, 1],
    ["memory MiB", (run) => run.pssMib, 0],
  ];
  return table([
    ["", ...columns.map(([title]) => title)],
    ...names.map((name) => [name, ...columns.map(([, pick, digits]) => text(present(of(name).map(pick)), digits))]),
  ]);
}

const latencyTitles = {
  open:
    "## Open loop\n\nPoisson arrivals, JSON: p50 / p99 / p99.9 in ms from the moment a request was to leave · CPU s of the server " +
    "per 1,000 requests. A server that answered less than nine tenths of a rate fell behind, and is not asked for more.",
  openBinary: "## Open loop, binary\n\nThe same with tensors as bytes.",
  burst:
    "## Bursts\n\nJSON, where half a second of every two has three times the mean rate and the rest a third of it.",
};

function latencies(drive, names, of) {
  const rates = [...new Set(names.flatMap((name) => of(name).flatMap((run) => Object.keys(run[drive] ?? {}))))];
  const cell = (name, rate) => {
    const results = present(of(name).map((run) => run[drive]?.[rate]));
    if (results.length === 0) return "–";
    if (!results.every(keptUp)) return "fell behind";
    const quantiles = ["p50", "p99", "p999"].map((quantile) =>
      text(
        results.map(({ latencyMs }) => latencyMs[quantile]),
        1,
      ),
    );
    const cpu = results.map(({ cpuSecondsPer1000 }) => cpuSecondsPer1000);
    return `${quantiles.join(" / ")} · ${text(cpu, 2)}`;
  };
  return [
    latencyTitles[drive],
    table([
      ["requests/s", ...names],
      ...rates.sort((a, b) => a - b).map((rate) => [rate, ...names.map((name) => cell(name, rate))]),
    ]),
  ];
}

/** Ratios of the same round, so that what disturbed the machine then hit both. */
function ratios(name, peers, of, plan) {
  const own = of(name);
  const ratio = (peer, pick) => {
    const values = own.flatMap((run) => {
      const [mine, theirs] = [pick(run), pick(of(peer).find(({ round }) => round === run.round) ?? {})];
      return mine === undefined || theirs === undefined ? [] : [mine / theirs];
    });
    return values.length === 0 ? undefined : median(values);
  };
  const tail = (peer, drive, rates) => {
    const p99 = (rate) => (run) => {
      const result = run[drive]?.[rate];
      return result !== undefined && keptUp(result) ? result.latencyMs.p99 : undefined;
    };
    const byRate = present(rates.map((rate) => ratio(peer, p99(rate))));
    if (byRate.length === 0) return "–";
    const mean = Math.exp(byRate.reduce((sum, value) => sum + Math.log(value), 0) / byRate.length);
    const missing = byRate.length < rates.length ? `, at ${byRate.length} of ${rates.length} rates` : "";
    return `${mean.toFixed(2)} (worst ${Math.max(...byRate).toFixed(2)}${missing})`;
  };
  const one = (peer, pick) => ratio(peer, pick)?.toFixed(2) ?? "–";
  return [
    `## ${name} to each\n\nRatios within a round, medians. Throughput: above 1 is ahead; the others: below 1 is ahead. p99 is the geometric mean over the rates from 300 to 2,000 requests/s that both kept up with.`,
    table([
      [
        "",
        "p99, open",
        "p99, bursts",
        "closed JSON",
        "closed binary",
        "CPU, JSON",
        "CPU, binary",
        "lone p50",
        "memory",
      ],
      ...peers.map((peer) => [
        peer,
        tail(peer, "open", shared(plan.rates, comparedRates)),
        tail(peer, "burst", burstRates),
        one(peer, (run) => run.closed?.json?.achievedPerS),
        one(peer, (run) => run.closed?.binary?.achievedPerS),
        one(peer, (run) => run.closed?.json?.cpuSecondsPer1000),
        one(peer, (run) => run.closed?.binary?.cpuSecondsPer1000),
        one(peer, (run) => run.lone?.latencyMs.p50),
        one(peer, (run) => run.pssMib),
      ]),
    ]),
    ...byRate(name, peers, of, ratio),
  ];
}

/** Each drive with rates: p50, p99 and CPU to those of each peer at each rate. */
function byRate(name, peers, of, ratio) {
  const drives = Object.keys(latencyTitles).filter((drive) => of(name).some((run) => run[drive] !== undefined));
  const rows = drives.flatMap((drive) =>
    [...new Set(of(name).flatMap((run) => Object.keys(run[drive] ?? {})))]
      .sort((a, b) => a - b)
      .map((rate) => {
        const kept = (pick) => (run) => {
          const result = run[drive]?.[rate];
          return result !== undefined && keptUp(result) ? pick(result) : undefined;
        };
        const cells = [
          ({ latencyMs }) => latencyMs.p50,
          ({ latencyMs }) => latencyMs.p99,
          (run) => run.cpuSecondsPer1000,
        ];
        const cell = (peer) => cells.map((pick) => ratio(peer, kept(pick))?.toFixed(2) ?? "–").join(" · ");
        return [`${shortTitles[drive]}, ${rate}/s`, ...peers.map(cell)];
      }),
  );
  return rows.length === 0 ? [] : ["The same by rate: p50 · p99 · CPU.", table([["", ...peers], ...rows])];
}

const shortTitles = { open: "JSON", openBinary: "binary", burst: "bursts" };

/** How far the figures can be trusted: what else ran, how late the generator sent, and what it took itself. */
function disturbance(runs) {
  const all = runs.flatMap((run) => [
    ...Object.values(run.closed ?? {}),
    ...Object.values(run.open ?? {}),
    ...Object.values(run.openBinary ?? {}),
    ...Object.values(run.burst ?? {}),
    ...present([run.lone]),
  ]);
  const others = median(all.map(({ othersCores }) => othersCores));
  const late = all.filter(({ latenessMs }) => latenessMs.max > 0).map(({ latenessMs }) => latenessMs.p99);
  const flatOut = runs.flatMap((run) => Object.values(run.closed ?? {}));
  const own = text(
    flatOut.map(({ generatorCpuSecondsPer1000 }) => generatorCpuSecondsPer1000),
    3,
  );
  return (
    `Other programs used ${others.toFixed(2)} cores meanwhile (median). The generator took ${own} CPU s per 1,000 requests in ` +
    `the closed loop, and sent ${text(late, 1)} ms late at p99 in the others (medians).`
  );
}
