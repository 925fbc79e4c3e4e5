import { strategyNames } from "../shared/strategies.ts";
import { devicesExpected, devicesOf } from "../runners/contract/devices.ts";
import { mostTextChars } from "../runners/text/seams.ts";
import { poolingModes } from "../runners/text/vector-modules.ts";

export type SettingGroup =
  | "Batching"
  | "Cache"
  | "Models and workers"
  | "Requests"
  | "Connections"
  | "Tenants"
  | "Batches"
  | "Process"
  | "Upstream"
  | "Fleet";

interface Row<T> {
  /** What stands for a value in help: `items`, `ms`, `thread|process`. */
  readonly valueName: string;
  /** Which values there are, where its name does not say it: `1 to 65536`. */
  readonly range?: string | undefined;
  readonly default: T;
  /** What a value must be, for messages and help: `an integer from 1 to 65536`. */
  readonly expects: string;
  readonly description: string;
  /** A secret is not printed. */
  readonly isSecret?: boolean;
  /** Whether a model may have a value of its own in the config file. */
  readonly isPerModel?: boolean;
  /** The value, or undefined where `raw` (text of a flag or variable, or a value of a config file) is not one. */
  parse(raw: unknown): T | undefined;
}

export interface Setting extends Required<Omit<Row<SettingValue>, "range">> {
  /** Name in a config file and in `Settings`, such as `maxBatchSize`. */
  readonly name: keyof Settings;
  /** Environment variable: `MAX_BATCH_SIZE`. */
  readonly env: string;
  /** Command-line flag: `--max-batch-size`. */
  readonly flag: string;
  readonly group: SettingGroup;
  readonly range?: string | undefined;
}

const longestMs = 86_400_000;
const mostProcesses = 64;

const rows = {
  ...inGroup("Batching", {
    maxBatchSize: perModel(
      integer(undefined, 1, 65_536, "Maximum items in a batch. Default: 32; text folders 128; sheaf proxy 100."),
    ),
    maxWaitMs: perModel(integer(50, 0, 60_000, "Maximum time to hold an item while a slot is free.")),
    queueMaxSize: perModel(integer(1000, 1, 10_000_000, "Maximum waiting items per model; further ones are refused.")),
    queueFullStatus: choice<429 | 503>([429, 503], 429, "HTTP status of a request when the queue is full."),
    schedulerStrategy: perModel(choice(strategyNames, "auto", "Policy that decides when a batch is sent.")),
    latencyBudgetMs: perModel(
      integer(undefined, 1, longestMs, "Latency up to which auto may hold items to save runs."),
    ),
  }),
  ...inGroup("Cache", {
    cacheMaxBytes: integer(0, 0, 1_099_511_627_776, "Memory for cached results of all models; 0 turns it off."),
    cacheDir: text("folder", undefined, "Folder for cached results that a restart finds again. Default: none."),
    cacheTtlMs: integer(undefined, 1, 31_536_000_000, "Maximum age of a cached result, in milliseconds."),
  }),
  ...inGroup("Models and workers", {
    inferenceDevice: perModel(
      row({
        default: "cpu",
        valueName: "devices",
        expects: devicesExpected,
        description: "Devices that run models: auto, or a list of cpu, cuda:0 and webgpu that is tried in order.",
        parse: devices,
      }),
    ),
    batchDependent: perModel(
      choice(
        ["single", "exact", "batch"],
        "single",
        "If results depend on the batch: single runs items alone if they differ by over 5 %, exact if they differ at all, batch never.",
      ),
    ),
    modelFile: perModel(
      row<string | undefined>({
        default: undefined,
        valueName: "path",
        expects: "a path in the folder",
        description: "Graph of a text model's folder to serve, such as onnx/model_quantized.onnx.",
        parse: (raw) => (typeof raw === "string" && raw.trim() !== "" ? raw.trim() : undefined),
      }),
    ),
    pooling: perModel(
      row<readonly string[] | undefined>({
        default: undefined,
        valueName: "modes",
        expects: `${Object.keys(poolingModes).join(", ")}, or several with commas, and normalize at the end`,
        description:
          "Pooling of text models whose folder names none: cls, mean, lasttoken …, optionally with ,normalize.",
        parse: poolingOf,
      }),
    ),
    autoTruncate: perModel(
      row({
        ...yesNo("Truncate texts that are too long for the model; false refuses them with 422."),
        default: true,
        valueName: "true|false",
      }),
    ),
    warmupBatches: perModel(integer(10, 0, 10_000, "Warm-up batches before a model is ready; 0: none.")),
    loadTimeoutMs: integer(600_000, 100, longestMs, "Maximum time for a model to load and warm up."),
    workers: perModel(integer(1, 1, 256, "Number of instances of each model, each in its own worker.")),
    workerIsolation: perModel(
      choice(["thread", "process"], "thread", "Run each model instance in a thread or a process."),
    ),
    recycleAfterBatches: perModel(
      integer(undefined, 1, 1_000_000_000, "Replace each worker after this many batches. Default: never."),
    ),
    workerThreads: integer(undefined, 1, 1024, "Threads of a run (ONNX, Python). Default: cores / WORKERS."),
    python: perModel(
      text("path", undefined, "Python for .py models. Default: .venv or venv beside the file, else python3."),
    ),
    watch: yesNo("Watch the folder of models: load new and changed ones, unload removed ones."),
    strictReadiness: yesNo("Report not ready until every model that the folder had at the start has loaded."),
  }),
  ...inGroup("Requests", {
    requestTimeoutMs: integer(25_000, 1, longestMs, "Maximum time a request waits; callers may set a shorter one."),
    runTimeoutMs: perModel(
      integer(undefined, 1, longestMs, "Maximum run time of a batch. Default: half of REQUEST_TIMEOUT_MS."),
    ),
    maxBodyBytes: integer(10_485_760, 1, 1_073_741_824, "Maximum size of a request body, in bytes."),
    maxReplyBytes: integer(
      67_108_864,
      1024,
      1_073_741_824,
      "Maximum size of a reply, a result or an upstream's reply.",
    ),
    maxInputs: integer(2048, 1, 1_000_000, "Maximum number of inputs in a request."),
    maxTextChars: integer(100_000, 1, mostTextChars, "Maximum length of a text, in UTF-16 characters."),
  }),
  ...inGroup("Connections", {
    maxConnections: integer(10_000, 1, 1_000_000, "Maximum open connections; further ones are closed."),
    uploadTimeoutMs: integer(30_000, 100, longestMs, "Maximum time for a request to arrive."),
    keepAliveTimeoutMs: integer(72_000, 1, longestMs, "How long to keep an idle connection open."),
    corsOrigins: row<readonly string[]>({
      default: [],
      valueName: "origins",
      range: 'https://example.org, several with commas, or "*"',
      expects: 'origins with commas (https://example.org), or "*"',
      description: "Origins whose pages may call the server. Default: none, and no CORS headers.",
      parse: (raw) => origins(raw),
    }),
    allowedHosts: row<readonly string[]>({
      default: [],
      valueName: "hosts",
      range: 'example.org, several with commas, or "*"',
      expects: 'host names with commas, or "*"',
      description: "Accepted host names, besides loopback ones. Default: any host, unless bound to loopback.",
      parse: (raw) => names(raw),
    }),
  }),
  ...inGroup("Tenants", {
    apiKeysFile: text("file", undefined, "JSON file of API keys; reloaded when it changes."),
    tenantBy: choice(
      ["key", "header", "user"],
      "key",
      "Source of a request's tenant: its key, TENANT_HEADER, or the user field of OpenAI's API.",
    ),
    tenantHeader: row({
      default: "x-tenant",
      valueName: "name",
      expects: "the name of a header",
      description: "Header in which a trusted gateway names the tenant, with TENANT_BY=header.",
      parse: (raw) => headerName(raw),
    }),
    tenantItemsPerSecond: integer(undefined, 1, 1_000_000_000, "Maximum items per second of a tenant."),
    tenantItemsInFlight: integer(undefined, 1, 10_000_000, "Maximum items of a tenant that wait or run."),
  }),
  ...inGroup("Batches", {
    batchesDir: text("folder", undefined, "Folder for uploaded files and batches. Default: none, and no such routes."),
    batchesMaxBytes: integer(
      10_737_418_240,
      1_048_576,
      1_099_511_627_776,
      "Maximum size of BATCHES_DIR; one tenant may fill half.",
    ),
  }),
  ...inGroup("Process", {
    host: text("address", "127.0.0.1", "Address to listen on."),
    port: integer(8000, 0, 65_535, "Port to listen on; 0 picks a free one."),
    httpProcesses: row<number | "auto">({
      default: 1,
      valueName: "n",
      range: `auto, or 1 to ${mostProcesses}`,
      expects: `auto, or an integer from 1 to ${mostProcesses}`,
      description: "Processes that read requests and write replies, beside the one that runs the models.",
      parse: (raw) => (raw === "auto" ? raw : integer(1, 1, mostProcesses, "").parse(raw)),
    }),
    grpcPort: integer(undefined, 0, 65_535, "Port for gRPC; 0 picks a free one. Default: no gRPC."),
    logLevel: {
      ...choice(
        ["trace", "debug", "info", "warn", "error", "fatal", "silent"],
        "info",
        "Minimum severity of log lines; debug adds a line per batch.",
      ),
      valueName: "level",
      range: "trace, debug, info, warn, error, fatal or silent",
    },
    recordFile: text(
      "file",
      undefined,
      "File for a record of all calls and runs without their contents, for sheaf recommend. Default: none.",
    ),
    apiKey: secret(text("key", undefined, "Bearer key required by every route except health.")),
    shutdownGraceMs: integer(25_000, 0, longestMs, "Time for accepted requests to finish at shutdown."),
  }),
  ...inGroup("Upstream", {
    upstream: row<string | undefined>({
      default: undefined,
      valueName: "url",
      expects: "an http or https URL without user, query or fragment",
      description: "Base URL of the API behind sheaf proxy.",
      parse: (raw) => baseUrl(raw),
    }),
    upstreamApiKey: secret(text("key", undefined, "API key for the upstream; required with API_KEYS_FILE.")),
    upstreamConcurrency: integer(undefined, 1, 1000, "Concurrent requests, per key and model. Default: learned."),
    upstreamRequestsPerMinute: integer(undefined, 1, 1_000_000_000, "Maximum requests per minute, per key and model."),
    upstreamTokensPerMinute: integer(undefined, 1, 1_000_000_000, "Maximum tokens per minute, per key and model."),
  }),
  ...inGroup("Fleet", {
    role: choice(
      ["gateway", "worker", "all"],
      "all",
      "With NATS_URL: accept requests (gateway), run models (worker), or both (all).",
    ),
    natsUrl: text("url", undefined, "NATS servers of the fleet's queue, separated by commas: nats://host:4222."),
    natsUser: text("name", undefined, "User name for the NATS server."),
    natsPassword: secret(text("password", undefined, "Password for the NATS server.")),
    natsCredsFile: text("file", undefined, "Credentials file (.creds) for the NATS server."),
    natsTlsCaFile: text("file", undefined, "CA certificate for the NATS server; setting it turns TLS on."),
    natsTlsCertFile: text("file", undefined, "Client certificate for the NATS server."),
    natsTlsKeyFile: text("file", undefined, "Private key of NATS_TLS_CERT_FILE."),
    natsDurability: choice(
      ["file", "memory", "none"],
      "file",
      "What accepted items survive: a restart of NATS (file), the loss of a worker (memory), or neither (none).",
    ),
    natsReplicas: integer(1, 1, 5, "Copies of the queue in a NATS cluster."),
    natsAckWaitMs: integer(5000, 300, 600_000, "Silence after which a worker's items go to other workers."),
    natsHoldMs: integer(1000, 0, 60_000, "How long requests wait for NATS or a worker before 503."),
    modelVersion: text("version", undefined, "Version of the worker's model. Default: a hash of its content."),
  }),
};

/** Every setting of `sheaf serve`, resolved. Times in milliseconds, sizes in bytes. */
export type Settings = { readonly [Name in keyof typeof rows]: (typeof rows)[Name]["default"] };

export type SettingValue = Settings[keyof Settings];

/** The one list of settings: flags, environment variables, config file keys and their documentation come from it. */
export const settingsTable: readonly Setting[] = (Object.keys(rows) as (keyof Settings)[]).map((name) => ({
  name,
  env: name.replaceAll(/[A-Z]/g, "_$&").toUpperCase(),
  flag: `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
  isSecret: false,
  isPerModel: false,
  ...rows[name],
  valueName: valueNameOf(name),
}));

/** A time or a size says its unit, as its name does. */
function valueNameOf(name: keyof Settings): string {
  const { valueName } = rows[name];
  if (valueName !== "n") return valueName;
  const unit = /(Ms|Bytes|Chars|Tokens)$/.exec(name)?.[0];
  return unit?.toLowerCase() ?? "n";
}

/** Variables that hold what a model's program has no business with: keys, and whatever opens the fleet's queue. */
export const secretVariables: readonly string[] = settingsTable
  .filter(({ isSecret, group, name }) => isSecret || (group === "Fleet" && name.startsWith("nats")))
  .map(({ env }) => env);

export const defaultSettings: Settings = Object.fromEntries(
  settingsTable.map((setting) => [setting.name, setting.default]),
) as unknown as Settings;

/** The `maxBatchSize` of a model that names no other. */
export const defaultBatchSize: number = 32;

/**
 * The longest run of a model. By default a batch that hangs is given up while there is time to run its other items again before
 * their callers' deadlines.
 */
export const runTimeoutOf = ({ requestTimeoutMs, runTimeoutMs = Math.ceil(requestTimeoutMs / 2) }: Settings): number =>
  runTimeoutMs;

/** Where `sheaf proxy` starts from other values: a gateway is there to save requests, so it waits for full ones. */
export const proxyDefaults: Partial<Settings> = {
  schedulerStrategy: "fifo",
  maxBatchSize: 100,
  maxWaitMs: 20,
  queueMaxSize: 10_000,
  // Slow completions pass through.
  runTimeoutMs: 60_000,
};

function inGroup<Rows extends Readonly<Record<string, Row<unknown>>>>(
  group: SettingGroup,
  grouped: Rows,
): { readonly [Name in keyof Rows]: Rows[Name] & { readonly group: SettingGroup } } {
  const entries = Object.entries(grouped).map(([name, row]) => [name, { ...row, group }]);
  return Object.fromEntries(entries) as ReturnType<typeof inGroup<Rows>>;
}

function row<T>(own: Row<T>): Row<T> {
  return own;
}

function perModel<T>(own: Row<T>): Row<T> {
  return { ...own, isPerModel: true };
}

function secret<T>(own: Row<T>): Row<T> {
  return { ...own, isSecret: true };
}

function integer(value: number, min: number, max: number, description: string): Row<number>;
function integer(value: undefined, min: number, max: number, description: string): Row<number | undefined>;
function integer(value: number | undefined, min: number, max: number, description: string): Row<number | undefined> {
  return {
    default: value,
    valueName: "n",
    range: `${min} to ${max}`,
    expects: `an integer from ${min} to ${max}`,
    description,
    parse: (raw) => {
      const number = typeof raw === "string" && /^\s*\d+\s*$/.test(raw) ? Number(raw) : raw;
      return Number.isInteger(number) && (number as number) >= min && (number as number) <= max
        ? (number as number)
        : undefined;
    },
  };
}

/** A flag without a value. */
function yesNo(description: string): Row<boolean> {
  return {
    default: false,
    valueName: "",
    expects: "true or false",
    description,
    parse: (raw) =>
      ["true", "1"].includes(String(raw)) ? true : ["false", "0"].includes(String(raw)) ? false : undefined,
  };
}

function choice<const T extends string | number>(values: readonly T[], value: T, description: string): Row<T>;
function choice<const T extends string>(
  values: readonly T[],
  value: undefined,
  description: string,
): Row<T | undefined>;
function choice<T extends string | number>(
  values: readonly T[],
  value: T | undefined,
  description: string,
): Row<T | undefined> {
  return {
    default: value,
    valueName: values.join("|"),
    expects: `one of ${values.join(", ")}`,
    description,
    parse: (raw) =>
      typeof raw === "string" || typeof raw === "number"
        ? values.find((one) => String(one) === String(raw).trim())
        : undefined,
  };
}

function text(valueName: string, value: string, description: string): Row<string>;
function text(valueName: string, value: undefined, description: string): Row<string | undefined>;
function text(valueName: string, value: string | undefined, description: string): Row<string | undefined> {
  return {
    default: value,
    valueName,
    expects: "a text that is not empty",
    description,
    parse: (raw) => (typeof raw === "string" && raw.trim() !== "" ? raw.trim() : undefined),
  };
}

function devices(raw: unknown): string | undefined {
  try {
    return typeof raw === "string" ? devicesOf(raw).join() : undefined;
  } catch {
    return undefined;
  }
}

function baseUrl(raw: unknown): string | undefined {
  if (typeof raw !== "string" || !URL.canParse(raw.trim())) return undefined;
  const { protocol, username, password, search, hash, href } = new URL(raw.trim());
  const isBase = /^https?:$/.test(protocol) && `${username}${password}${search}${hash}` === "";
  return isBase ? href.replace(/\/+$/, "") : undefined;
}

function poolingOf(raw: unknown): readonly string[] | undefined {
  const list = names(raw);
  const modes = list?.at(-1) === "normalize" ? list.slice(0, -1) : (list ?? []);
  return modes.length > 0 && modes.every((mode) => Object.hasOwn(poolingModes, mode)) ? list : undefined;
}

function names(raw: unknown): readonly string[] | undefined {
  const list = listOf(raw);
  return list?.every((name) => typeof name === "string" && name !== "") === true ? (list as string[]) : undefined;
}

/** The parts of a text with commas, or a list as it is. */
function listOf(raw: unknown): readonly unknown[] | undefined {
  const list: unknown = typeof raw === "string" ? raw.split(",").map((part) => part.trim()) : raw;
  return Array.isArray(list) ? list : undefined;
}

function headerName(raw: unknown): string | undefined {
  return typeof raw === "string" && /^[\w!#$%&'*+.^`|~-]{1,64}$/.test(raw.trim())
    ? raw.trim().toLowerCase()
    : undefined;
}

function origins(raw: unknown): readonly string[] | undefined {
  const list = listOf(raw);
  if (list === undefined) return undefined;
  const isOrigin = (origin: unknown): boolean => origin === "*" || (URL.canParse(String(origin)) && isBare(origin));
  return list.every(isOrigin) ? (list as string[]) : undefined;
}

function isBare(origin: unknown): boolean {
  return typeof origin === "string" && new URL(origin).origin === origin;
}
