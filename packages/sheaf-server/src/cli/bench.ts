import type { Command } from "commander";
import type { Retries } from "sheaf/internal/tuning";
import { retriesOf, withClients, withHeaders } from "./shared/client-options.ts";
import { lengthsOf, withLengths } from "./shared/lengths-option.ts";
import { hasTenants, withTenants, type TenantOptions } from "./shared/tenant-options.ts";
import { checkAssertions, parseAssertion } from "../load/bench/assertion.ts";
import { publishBench } from "../load/bench/output.ts";
import { recordingOf } from "./shared/recorded.ts";
import { textOf } from "./shared/text-file.ts";
import {
  countUpTo,
  exitCode,
  largestSeed,
  listOf,
  maxPerS,
  newCommand,
  numberFrom,
  oneOf,
  parseDurationMs,
  refuseGiven,
  repeated,
  running,
  withOutputs,
  type OutputOptions,
  type RunCommand,
} from "./shared/command.ts";
import { CommandFailure, UsageError, parsedUrl, usage } from "../shared/failure.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import { builtinTemplate } from "../load/builtin-payload.ts";
import { configurationNames, configurations, type ConfigurationName } from "../load/configurations.ts";
import { runLoad } from "../load/generator.ts";
import { httpTarget } from "../load/http/http-target.ts";
import { openPatterns, type Pattern } from "../load/pattern.ts";
import { bodiesFromFile, bodiesFromTemplate, bodiesOfLengths, type Bodies } from "../load/payload.ts";
import { probe, requestsFor, templateFor } from "../load/http/probe.ts";
import { withHeader } from "../load/http/request.ts";
import { tenantHeaders, type TenantHeaders } from "../load/http/tenant-headers.ts";
import type { LoadResult } from "../load/result.ts";
import { serveModel } from "../load/http/server-process.ts";
import { replayOf, type Replay } from "../load/http/replay.ts";
import { prepareReport } from "../load/report/prepare.ts";
import { TenantMix, type Senders } from "../load/senders.ts";
import { batchesBetween, readBatchSizes } from "../load/http/server-metrics.ts";
import { systemClock } from "../load/system-clock.ts";
import { figures, progressOn, shownMs, type Progress } from "../shared/terminal.ts";
import { sheafEntry } from "./entry.ts";

interface BenchOptions extends OutputOptions, TenantOptions {
  readonly pattern: Pattern[];
  readonly rate: number;
  readonly callers: number;
  readonly duration: number;
  readonly warmUp: number;
  readonly timeout: number;
  readonly connections: number;
  readonly seed: number;
  readonly method: string;
  readonly header?: Readonly<Record<string, string>>;
  readonly payload?: string;
  readonly payloadFile?: string;
  readonly lengths?: string;
  readonly trace?: string;
  readonly speed: number;
  readonly model?: string;
  readonly tenantHeader: string;
  readonly tenantKeys?: string;
  readonly compare?: ConfigurationName[];
  readonly assert: string[];
}

const patternNames: readonly Pattern[] = [...openPatterns, "closed"];

/** `sheaf bench [url|model]`: open-loop load, several patterns and configurations in one run. */
export const bench: RunCommand = running(benchCommand, runBench);

export function benchCommand(streams: CommandStreams): Command {
  const command = newCommand("bench", streams)
    .description(
      "Sends open-loop load to a server or a model, and measures latency from the scheduled time of each request. A " +
        "model is served on a free port for the run.",
    )
    .argument("[target]", "URL to load, or a model as for sheaf serve", "use-lite")
    .option("--pattern <names>", `comma-separated: ${patternNames.join(", ")}`, listOf(oneOf(patternNames)), ["steady"])
    .option("--rate <n>", "mean requests per second of each open pattern", numberFrom(0.001, maxPerS), 100)
    .option("--callers <n>", "callers of the closed pattern", countUpTo(100_000), 16)
    .option("--duration <time>", "measured time of each run", parseDurationMs, 10_000)
    .option("--warm-up <time>", "load before each run that is not measured", parseDurationMs, 2000)
    .option("--timeout <time>", "time after which a request without a reply is abandoned", parseDurationMs, 10_000)
    .option("--connections <n>", "maximum number of keep-alive connections", countUpTo(100_000), 1024)
    .option("--seed <n>", "seed of arrivals and payloads", countUpTo(largestSeed), 1)
    .option("--method <name>", "HTTP method; GET sends no payload", "POST")
    .option("--payload <template>", "request body; {{floats N}}, {{words N}}, {{int N}} and {{i}} vary")
    .option("--payload-file <path>", "request body from a file, or one body a line of a .jsonl file")
    .option("--compare <names>", `one run each: ${configurationNames.join(", ")}`, listOf(oneOf(configurationNames)))
    .option("--assert <condition>", "exit with 3 unless this holds, such as p99<50ms; repeatable", repeated, []);
  command
    .option("--trace <file>", "replay the calls of a record (RECORD_FILE), each at its time and length")
    .option("--speed <n>", "with --trace: this many times as fast", numberFrom(0.01, 100), 1)
    .option("--model <name>", "with --trace: the model, if the record has several");
  withLengths(command, "words per text, instead of N in {{words N}}");
  withTenants(command, "n requests per second")
    .option("--tenant-header <name>", "with --tenants: header that names the caller", "X-Tenant")
    .option("--tenant-keys <file>", "with --tenants: API keys of the callers instead, one a line, the flood's last");
  return withOutputs(withClients(withHeaders(command)));
}

async function runBench(command: Command, streams: CommandStreams, args: readonly string[]): Promise<number> {
  const replay = await replayFor(command);
  const given = command.opts<BenchOptions>();
  const options: BenchOptions =
    replay === undefined ? given : { ...given, pattern: ["trace"], warmUp: 0, duration: replay.durationMs };
  const [target] = command.processedArgs as [string];
  const url = /^https?:\/\//i.test(target) ? parsedUrl(target) : undefined;
  const assertions = usage(() => options.assert.map(parseAssertion));
  const headers = options.header ?? {};
  const names: string[] = url === undefined ? (options.compare ?? ["auto"]) : [url.host];
  checkCombinations(options, url, names, assertions);
  const retries = retriesOf(command);
  if (retries !== undefined && command.getOptionValueSource("timeout") === "cli")
    throw new UsageError("--patience replaces --timeout: give one or the other.");
  const lengths = options.lengths === undefined ? undefined : await lengthsOf(options.lengths);
  const fill = (template: string): Bodies =>
    usage(() =>
      replay?.lengths === undefined
        ? bodiesFromTemplate(template, options.seed, lengths)
        : bodiesOfLengths(template, options.seed, replay.lengths),
    );
  const givenBodies = await bodiesOf(options, fill);
  const tenants = await tenantsOf(command, options, url !== undefined);
  await prepareReport(options);

  const progress = progressOn(streams.stderr);
  const results: LoadResult[] = [];
  for (const [i, pattern] of options.pattern.entries()) {
    // Patterns start with different configurations, so that no configuration always runs first.
    for (const name of [...names.slice(i % names.length), ...names.slice(0, i % names.length)]) {
      const shared = { name, pattern, headers, bodies: givenBodies, fill, retries, tenants, replay };
      results.push(await oneRun(options, url, target, shared, progress, streams.signal));
    }
  }
  results.sort((a, b) => names.indexOf(a.configuration) - names.indexOf(b.configuration));
  results.sort((a, b) => options.pattern.indexOf(a.pattern) - options.pattern.indexOf(b.pattern));

  const outcomes = checkAssertions(assertions, results);
  await publishBench(options, args, results, outcomes, streams);
  const silent = results.filter(({ ok }) => ok === 0);
  if (silent.length > 0) {
    const which = silent.map(({ configuration, pattern }) => `${configuration}, ${pattern}`).join("; ");
    throw new CommandFailure(`no request succeeded (${which}): there is nothing to measure.`);
  }
  return outcomes.every(({ holds }) => holds) ? exitCode.ok : exitCode.no;
}

interface Run {
  readonly name: string;
  readonly pattern: Pattern;
  readonly headers: Readonly<Record<string, string>>;
  /** undefined: asked of the server. */
  readonly bodies: Bodies | undefined;
  /** Makes them from a template. */
  readonly fill: (template: string) => Bodies;
  readonly retries: Retries | undefined;
  readonly tenants: LoadTenants | undefined;
  readonly replay: Replay | undefined;
}

async function oneRun(
  options: BenchOptions,
  given: URL | undefined,
  model: string,
  { name, pattern, headers, bodies, fill, retries, tenants, replay }: Run,
  progress: Progress,
  signal: AbortSignal | undefined,
): Promise<LoadResult> {
  progress.start(`${pattern}, ${name}`);
  const flags = [...(configurations[name as ConfigurationName] ?? []), ...(tenants?.serveFlags ?? [])];
  const served = given === undefined ? await serveModel({ entry: sheafEntry, model, flags, signal }) : undefined;
  try {
    const url = given ?? new URL("/infer", served!.origin);
    if (url.pathname === "/" && options.method === "POST") url.pathname = "/infer";
    const known = given === undefined ? builtinTemplate(model) : undefined;
    const sent = bodies ?? (await askedBodies(options, url, headers, known, fill));
    const requests = usage(() => requestsFor(url, options.method, headers, sent));
    const first = usage(() => requests(0));
    const probed = tenants === undefined ? first : withHeader(first, tenants.headers.first);
    await probe(options.method, url, probed, options.timeout);
    const before = await readBatchSizes(url.origin);
    const target = httpTarget({
      url,
      requests,
      headerAt: tenants?.headers.at ?? replay?.headerAt,
      maxConnections: options.connections,
    });
    let result: LoadResult;
    try {
      const running = usage(() =>
        runLoad({
          configuration: name,
          target,
          clock: systemClock,
          pattern,
          ratePerS: options.rate + (options.flood ?? 0),
          callers: options.callers,
          arrivalsMs: replay?.arrivalsMs,
          durationMs: options.duration,
          warmUpMs: options.warmUp,
          timeoutMs: options.timeout,
          retries,
          senders: tenants?.senders,
          seed: options.seed,
          onProgress: ({ elapsedMs, totalMs, open }) => progress.update(elapsedMs / totalMs, `${open} open`),
          signal,
        }),
      );
      result = await running;
    } finally {
      target.close();
    }
    const after = await readBatchSizes(url.origin);
    const { achievedPerS, latencyMs } = result;
    progress.end(`${figures(achievedPerS)}/s, p50 ${shownMs(latencyMs.p50)}, p99 ${shownMs(latencyMs.p99)}`);
    return after === undefined ? result : { ...result, batches: batchesBetween(before, after) };
  } finally {
    await served?.stop();
  }
}

/** Bodies for a known model, or for a server that reports its inputs; none if the method takes no body. */
async function askedBodies(
  options: BenchOptions,
  url: URL,
  headers: Readonly<Record<string, string>>,
  known: string | undefined,
  fill: Run["fill"],
): Promise<Bodies | undefined> {
  if (options.method !== "POST") return undefined;
  const model = /^\/infer\/([^/]+)$/.exec(url.pathname)?.[1];
  const template =
    known ??
    (await templateFor(url.origin, model && decodeURIComponent(model), { headers, timeoutMs: options.timeout }));
  return fill(template);
}

async function bodiesOf({ payload, payloadFile }: BenchOptions, fill: Run["fill"]): Promise<Bodies | undefined> {
  if (payload !== undefined) return fill(payload);
  if (payloadFile === undefined) return undefined;
  const text = await textOf("--payload-file", payloadFile);
  return usage(() => bodiesFromFile(payloadFile, text));
}

/** What a record says instead. */
const replaced = ["pattern", "rate", "callers", "duration", "warmUp", "tenants", "flood"];

async function replayFor(command: Command): Promise<Replay | undefined> {
  const { trace, speed, model } = command.opts<BenchOptions>();
  if (trace === undefined) {
    refuseGiven(command, ["speed", "model"], "needs --trace.");
    return undefined;
  }
  refuseGiven(command, replaced, "and --trace exclude each other: requests come as in the record.");
  const replay = replayOf(await recordingOf([trace], model), speed);
  if (replay.lengths !== undefined)
    refuseGiven(command, ["lengths"], "is for a record without weights: this one has lengths of its own.");
  return replay;
}

interface LoadTenants {
  readonly senders: Senders;
  readonly headers: TenantHeaders;
  /** For a model that is served for the run. */
  readonly serveFlags: readonly string[];
}

async function tenantsOf(command: Command, options: BenchOptions, isUrl: boolean): Promise<LoadTenants | undefined> {
  const { tenants: count, flood = 0, rate, pattern, seed, tenantHeader, tenantKeys } = options;
  if (!hasTenants(command, ["tenantHeader", "tenantKeys"])) return undefined;
  if (flood > 0 && pattern.includes("closed")) throw new UsageError("--flood needs a pattern with a rate: not closed.");
  if (tenantKeys !== undefined && !isUrl)
    throw new UsageError("--tenant-keys is for a URL: a model that is served for the run knows no keys.");
  const senders = new TenantMix(count!, flood / (flood + rate), seed ^ 0x7f4a7c15);
  const keys = tenantKeys === undefined ? undefined : await keysOf(tenantKeys, senders.count);
  return {
    senders,
    headers: usage(() => tenantHeaders(senders, tenantHeader, keys)),
    serveFlags: ["--tenant-by", "header", "--tenant-header", tenantHeader],
  };
}

async function keysOf(path: string, count: number): Promise<string[]> {
  const keys = (await textOf("--tenant-keys", path)).split("\n").map((line) => line.trim());
  const given = keys.filter((key) => key !== "");
  if (given.length === count && given.every((key) => /^[\x21-\x7e]+$/.test(key))) return given;
  throw new UsageError(`--tenant-keys ${path} must hold ${count} API keys, one a line, got ${given.length}.`);
}

function checkCombinations(
  options: BenchOptions,
  url: URL | undefined,
  names: readonly string[],
  assertions: readonly { readonly text: string; readonly configuration: string | undefined }[],
): void {
  if (url !== undefined && options.compare !== undefined) {
    throw new UsageError("--compare serves a model once per configuration: name a model, not a URL.");
  }
  if (options.payload !== undefined && options.payloadFile !== undefined) {
    throw new UsageError("--payload and --payload-file exclude each other.");
  }
  if (options.lengths !== undefined && options.payloadFile !== undefined) {
    throw new UsageError("--lengths and --payload-file exclude each other: bodies from a file have their own lengths.");
  }
  if (options.duration === 0 || options.timeout === 0)
    throw new UsageError("--duration and --timeout must be above 0.");
  const stray = assertions.find(({ configuration }) => configuration !== undefined && !names.includes(configuration));
  if (stray !== undefined) {
    throw new UsageError(`--assert ${stray.text} names a configuration that does not run (${names.join(", ")} do).`);
  }
}
