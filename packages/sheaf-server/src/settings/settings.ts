import { strategyNames, type StrategyName } from "../shared/strategies.ts";
import { devicesExpected, devicesOf } from "../runners/contract/devices.ts";

/** Every setting of `sheaf serve`, resolved. Times in milliseconds, sizes in bytes. */
export interface Settings {
  readonly maxBatchSize: number;
  readonly maxWaitMs: number;
  readonly queueMaxSize: number;
  readonly queueFullStatus: 429 | 503;
  readonly inferenceDevice: string;
  readonly schedulerStrategy: StrategyName;
  /** Default: `"newest"`, but `"arrival"` with the strategy fifo. */
  readonly overloadOrder: "newest" | "arrival" | undefined;
  readonly adaptiveTargetLatencyMs: number;
  readonly latencyBudgetMs: number | undefined;
  readonly batchDependent: "single" | "exact" | "batch";
  readonly warmupBatches: number;
  readonly cacheMaxBytes: number;
  readonly cacheTtlMs: number | undefined;
  readonly cacheExcept: readonly string[];
  readonly requestTimeoutMs: number;
  readonly runTimeoutMs: number;
  readonly crashedInputMs: number;
  readonly workers: number;
  readonly workerIsolation: "thread" | "process";
  /** Default: the cores shared out among the workers. */
  readonly workerThreads: number | undefined;
  readonly workerNiceness: number;
  readonly python: string | undefined;
  readonly watch: boolean;
  readonly strictReadiness: boolean;
  readonly maxBodyBytes: number;
  readonly maxJsonKeys: number;
  readonly maxJsonArrays: number;
  readonly maxInputs: number;
  readonly maxTextChars: number;
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  readonly uploadTimeoutMs: number;
  readonly replyTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly corsOrigins: readonly string[];
  readonly allowedHosts: readonly string[];
  readonly host: string;
  readonly port: number;
  readonly grpcPort: number | undefined;
  readonly logLevel: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  readonly apiKey: string | undefined;
  readonly shutdownGraceMs: number;
  readonly upstream: string | undefined;
  readonly upstreamConcurrency: number;
  readonly upstreamRequestsPerMinute: number | undefined;
  readonly upstreamTokensPerMinute: number | undefined;
  readonly upstreamMaxReplyBytes: number;
  readonly maxBatchTokens: number;
  readonly role: "gateway" | "worker" | "all";
  readonly natsUrl: string | undefined;
  readonly natsUser: string | undefined;
  readonly natsPassword: string | undefined;
  readonly natsToken: string | undefined;
  readonly natsCredsFile: string | undefined;
  readonly natsTlsCaFile: string | undefined;
  readonly natsTlsCertFile: string | undefined;
  readonly natsTlsKeyFile: string | undefined;
  readonly natsDurability: "file" | "memory" | "none";
  readonly natsReplicas: number;
  readonly natsAckWaitMs: number;
  readonly natsMaxDeliver: number;
  readonly natsHoldMs: number;
  readonly modelVersion: string | undefined;
}

/** What a setting can be. */
export type SettingValue = Settings[keyof Settings];

/** Under which heading of a help text a setting stands. */
export type SettingGroup =
  "Batching" | "Cache" | "Models and workers" | "Requests" | "Connections" | "Process" | "Upstream" | "Fleet";

/** One row of the table. */
export interface Setting<T = SettingValue> {
  /** Name in a config file and in `Settings`, such as `maxBatchSize`. */
  readonly name: keyof Settings;
  /** Environment variable: `MAX_BATCH_SIZE`. */
  readonly env: string;
  /** Command-line flag: `--max-batch-size`. */
  readonly flag: string;
  readonly group: SettingGroup;
  /** What stands for a value in help: `items`, `ms`, `thread|process`. */
  readonly valueName: string;
  /** Which values there are, where its name does not say it: `1 to 65536`. */
  readonly range?: string | undefined;
  readonly default: T;
  /** What a value must be, for messages and help: `an integer from 1 to 65536`. */
  readonly expects: string;
  readonly description: string;
  /** A secret is not printed. */
  readonly isSecret: boolean;
  /** The value, or undefined where `raw` (text of a flag or variable, or a value of a config file) is not one. */
  parse(raw: unknown): T | undefined;
}

interface Row<T> {
  readonly default: T;
  readonly valueName: string;
  readonly range?: string | undefined;
  readonly expects: string;
  readonly description: string;
  readonly isSecret?: boolean;
  parse(raw: unknown): T | undefined;
}

const longestMs = 86_400_000;

const rows = {
  ...inGroup("Batching", {
    maxBatchSize: integer(32, 1, 65_536, "Most items in a batch."),
    maxWaitMs: integer(50, 0, 60_000, "Longest voluntary holding of an item while a slot is free; the window of fifo."),
    queueMaxSize: integer(1000, 1, 10_000_000, "Most items waiting per model; one more is refused at once."),
    queueFullStatus: {
      ...choice<429 | 503>([429, 503], 429, "Status of a request that finds the queue full."),
      parse: (raw) => ([429, 503] as const).find((status) => String(status) === String(raw).trim()),
    },
    schedulerStrategy: choice(strategyNames, "auto", "When a batch is sent."),
    overloadOrder: optional(
      choice(["newest", "arrival"], "newest", "Which items go first under standing overload; with fifo: arrival."),
    ),
    adaptiveTargetLatencyMs: integer(100, 1, longestMs, "Run time that the adaptive strategy aims at."),
    latencyBudgetMs: {
      ...optional(integer(1, 1, longestMs, "")),
      description: "Latency up to which the auto strategy may hold items to save runs.",
    },
  }),
  ...inGroup("Cache", {
    cacheMaxBytes: integer(
      0,
      0,
      1_099_511_627_776,
      "Memory for results of equal inputs, of all models together; 0: none.",
    ),
    cacheTtlMs: {
      ...optional(integer(1, 1, 31_536_000_000, "")),
      description: "Longest age of a result that is given.",
    },
    cacheExcept: {
      default: [],
      valueName: "models",
      expects: "names of models with commas",
      description: "Models whose results are never kept, with commas.",
      parse: (raw) => names(raw),
    },
  }),
  ...inGroup("Models and workers", {
    inferenceDevice: {
      default: "cpu",
      valueName: "devices",
      expects: devicesExpected,
      description: "Where models run: auto, or cpu, cuda:0, webgpu, several with commas, tried in turn.",
      parse: devices,
    },
    batchDependent: choice(
      ["single", "exact", "batch"],
      "single",
      "A model whose results depend on their batch runs one by one where by more than 5 %, however little, or never.",
    ),
    warmupBatches: integer(10, 0, 10_000, "Batches run before a model is ready, spread over sizes 1, 2, 4 … max."),
    workers: integer(1, 1, 256, "Instances of each model, each in a worker of its own."),
    workerIsolation: choice(["thread", "process"], "thread", "What holds an instance of a model."),
    workerThreads: {
      ...optional(integer(1, 1, 1024, "")),
      description:
        "Threads of one run inside a worker (ONNX and Python models); without it cores / WORKERS, at least 1.",
    },
    workerNiceness: integer(0, 0, 19, "How far the scheduling priority of workers is lowered; 0 leaves it as it is."),
    python: {
      ...optional(text("path", "", "")),
      description: "Python that runs .py models; without it .venv or venv beside the file, else python3.",
    },
    watch: yesNo(
      "Loads what is new or changed in the folder of models, once it stands still, and unloads what is gone.",
    ),
    strictReadiness: yesNo(
      "The server is not ready while a model that its folder of models had at the start is broken.",
    ),
  }),
  ...inGroup("Requests", {
    requestTimeoutMs: integer(30_000, 1, longestMs, "Longest wait of a request; a caller may ask for less."),
    runTimeoutMs: integer(60_000, 1, longestMs, "Longest run of one batch; past it the batch is given up."),
    crashedInputMs: integer(
      600_000,
      0,
      86_400_000,
      "How long an input that crashed a worker is refused; 0 lets it run again.",
    ),
    maxBodyBytes: integer(10_485_760, 1, 1_073_741_824, "Largest request body in bytes."),
    maxJsonKeys: integer(100_000, 1, 1_000_000_000, "Most keys of all objects in a JSON body."),
    maxJsonArrays: integer(1_000_000, 1, 1_000_000_000, "Most arrays and objects in a JSON body."),
    maxInputs: integer(2048, 1, 1_000_000, "Most inputs in one request."),
    maxTextChars: integer(100_000, 1, 100_000_000, "Longest text in UTF-16 characters."),
    maxHeaderBytes: integer(16_384, 1024, 1_048_576, "Largest header section of a request in bytes."),
  }),
  ...inGroup("Connections", {
    maxConnections: integer(10_000, 1, 1_000_000, "Most open connections; one more is closed at once."),
    uploadTimeoutMs: integer(30_000, 100, longestMs, "Longest time a request may take to arrive."),
    replyTimeoutMs: integer(120_000, 100, longestMs, "Longest time that a client may take to read its reply."),
    keepAliveTimeoutMs: integer(72_000, 1, longestMs, "How long an idle connection is kept."),
    corsOrigins: {
      default: [],
      valueName: "origins",
      range: 'https://example.org, several with commas, or "*"',
      expects: 'origins with commas (https://example.org), or "*"',
      description: "Origins whose pages may call the server; none means no CORS headers at all.",
      parse: (raw) => origins(raw),
    },
    allowedHosts: {
      default: [],
      valueName: "hosts",
      range: 'example.org, several with commas, or "*"',
      expects: 'host names with commas, or "*"',
      description: "Host names that requests may be sent to, beside loopback ones. Off loopback, without it: any.",
      parse: (raw) => names(raw),
    },
  }),
  ...inGroup("Process", {
    host: text("address", "127.0.0.1", "Address to listen on."),
    port: integer(8000, 0, 65_535, "Port to listen on; 0 takes a free one."),
    grpcPort: {
      ...optional(integer(0, 0, 65_535, "")),
      description: "Port for gRPC, beside HTTP; 0 takes a free one. Without it there is no gRPC.",
    },
    logLevel: {
      ...choice(
        ["trace", "debug", "info", "warn", "error", "fatal", "silent"],
        "info",
        "Least severe log line that is written; debug adds a line per batch.",
      ),
      valueName: "level",
      range: "trace, debug, info, warn, error, fatal or silent",
    },
    apiKey: {
      ...optional(text("key", "", "Bearer key that every route but the health routes asks for.")),
      isSecret: true,
    },
    shutdownGraceMs: integer(25_000, 0, longestMs, "How long a shutdown may finish what is in."),
  }),
  ...inGroup("Upstream", {
    upstream: {
      default: undefined,
      valueName: "url",
      expects: "an http or https URL without user, query or fragment",
      description: "The API behind sheaf proxy: its base URL.",
      parse: (raw) => baseUrl(raw),
    },
    upstreamConcurrency: integer(8, 1, 1000, "Requests to the upstream at once, for each key and model."),
    upstreamRequestsPerMinute: {
      ...optional(integer(1, 1, 1_000_000_000, "")),
      description: "Requests to the upstream in a minute, for each key and model.",
    },
    upstreamTokensPerMinute: {
      ...optional(integer(1, 1, 1_000_000_000, "")),
      description: "Tokens to the upstream in a minute, for each key and model, as estimated.",
    },
    upstreamMaxReplyBytes: integer(
      67_108_864,
      1024,
      1_073_741_824,
      "Largest reply of the upstream to one request, in bytes.",
    ),
    maxBatchTokens: integer(300_000, 1, 1_000_000_000, "Most tokens in a request to the upstream, as estimated."),
  }),
  ...inGroup("Fleet", {
    role: choice(["gateway", "worker", "all"], "all", "With NATS_URL: take requests, run models, or both."),
    natsUrl: optional(
      text("url", "", "NATS server whose queue a fleet shares: nats://host:4222, several with commas."),
    ),
    natsUser: optional(text("name", "", "User at the NATS server.")),
    natsPassword: { ...optional(text("password", "", "Password at the NATS server.")), isSecret: true },
    natsToken: { ...optional(text("token", "", "Token at the NATS server.")), isSecret: true },
    natsCredsFile: optional(text("file", "", "Credentials file (.creds) for the NATS server.")),
    natsTlsCaFile: optional(text("file", "", "CA of the NATS server's certificate; given, the connection uses TLS.")),
    natsTlsCertFile: optional(text("file", "", "Own certificate for the NATS server.")),
    natsTlsKeyFile: optional(text("file", "", "Key of NATS_TLS_CERT_FILE.")),
    natsDurability: choice(
      ["file", "memory", "none"],
      "file",
      "What accepted items survive: the NATS server's restart, their worker's end, or neither.",
    ),
    natsReplicas: integer(1, 1, 5, "Copies of the queue in a NATS cluster."),
    natsAckWaitMs: integer(5000, 300, 600_000, "Silence after which the items of a worker go to others."),
    natsMaxDeliver: integer(5, 1, 100, "Deliveries of an item before it goes to the dead letters."),
    natsHoldMs: integer(1000, 0, 60_000, "How long requests wait for NATS to come back before they get 503."),
    modelVersion: optional(text("version", "", "Version of the model that a worker runs; default: by its content.")),
  }),
};

const table: { readonly [Name in keyof Settings]: Row<Settings[Name]> & { readonly group: SettingGroup } } = rows;

/** The one list of settings: flags, environment variables, config file keys and their documentation come from it. */
export const settingsTable: readonly Setting[] = (Object.keys(table) as (keyof Settings)[]).map((name) => ({
  name,
  env: name.replaceAll(/[A-Z]/g, "_$&").toUpperCase(),
  flag: `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
  isSecret: false,
  ...table[name],
  valueName: valueNameOf(name),
}));

/** A time or a size says its unit, as its name does. */
function valueNameOf(name: keyof Settings): string {
  const { valueName } = table[name];
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

/** Where `sheaf proxy` starts from other values: a gateway is there to save requests, so it waits for full ones. */
export const proxyDefaults: Partial<Settings> = {
  schedulerStrategy: "fifo",
  overloadOrder: "newest",
  maxBatchSize: 100,
  maxWaitMs: 20,
  queueMaxSize: 10_000,
};

/** Rows of one heading. */
function inGroup<Rows extends Readonly<Record<string, Row<unknown>>>>(
  group: SettingGroup,
  grouped: Rows,
): { readonly [Name in keyof Rows]: Rows[Name] & { readonly group: SettingGroup } } {
  const entries = Object.entries(grouped).map(([name, row]) => [name, { ...row, group }]);
  return Object.fromEntries(entries) as ReturnType<typeof inGroup<Rows>>;
}

function integer(value: number, min: number, max: number, description: string): Row<number> {
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

function choice<const T extends string | number>(values: readonly T[], value: T, description: string): Row<T> {
  return {
    default: value,
    valueName: values.join("|"),
    expects: `one of ${values.join(", ")}`,
    description,
    parse: (raw) => (values.includes(raw as T) ? (raw as T) : undefined),
  };
}

function text(valueName: string, value: string, description: string): Row<string> {
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

function optional<T>(row: Row<T>): Row<T | undefined> {
  return { ...row, default: undefined };
}

function baseUrl(raw: unknown): string | undefined {
  if (typeof raw !== "string" || !URL.canParse(raw.trim())) return undefined;
  const { protocol, username, password, search, hash, href } = new URL(raw.trim());
  const isBase = /^https?:$/.test(protocol) && `${username}${password}${search}${hash}` === "";
  return isBase ? href.replace(/\/+$/, "") : undefined;
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

function origins(raw: unknown): readonly string[] | undefined {
  const list = listOf(raw);
  if (list === undefined) return undefined;
  const isOrigin = (origin: unknown): boolean => origin === "*" || (URL.canParse(String(origin)) && isBare(origin));
  return list.every(isOrigin) ? (list as string[]) : undefined;
}

function isBare(origin: unknown): boolean {
  return typeof origin === "string" && new URL(origin).origin === origin;
}
