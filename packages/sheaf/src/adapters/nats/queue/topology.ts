import { NatsQueueError } from "../wire/errors.ts";
import {
  electing,
  isLeaderless,
  jetStream,
  type ApiError,
  type Config,
  type ConsumerInfo,
  type StreamInfo,
} from "./jetstream.ts";
import { lanes, tokenOf, type QueueSettings } from "./options.ts";

/** Every subject and name of a queue. */
export interface QueueNames {
  readonly stream: string;
  readonly deadStream: string;
  readonly deadLetters: string;
  /** Core subjects. */
  readonly cancel: string;
  readonly alive: string;
  readonly joined: string;
  /** Where one worker listens. */
  worker(id: string): string;
  readonly discover: string;
  readonly careful: string;
  /** The server's report about the queue. */
  readonly maxDeliveries: string;
  readonly streamDeleted: string;
  readonly streamUpdated: string;
  readonly consumerDeleted: string;
  /** In a cluster, each time that another server leads the queue or a consumer of it. */
  readonly streamElected: string;
  readonly consumerElected: string;
  lane(route: string, lane: string): string;
  consumer(route: string, lane: string): string;
}

export function namesOf({ queue, durability }: QueueSettings): QueueNames {
  const token = tokenOf(queue);
  const stream = `SHEAF_${token}`;
  const base = `sheaf.${token}`;
  return {
    stream,
    deadStream: `${stream}_DLQ`,
    deadLetters: `${base}.dlq`,
    cancel: `${base}.cancel`,
    alive: `${base}.alive`,
    joined: `${base}.joined`,
    worker: (id) => `${base}.w.${id}`,
    discover: `${base}.who`,
    careful: `${base}.careful`,
    streamUpdated: `$JS.EVENT.ADVISORY.STREAM.UPDATED.${stream}`,
    streamDeleted: `$JS.EVENT.ADVISORY.STREAM.DELETED.${stream}`,
    consumerDeleted: `$JS.EVENT.ADVISORY.CONSUMER.DELETED.${stream}.*`,
    streamElected: `$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.${stream}`,
    consumerElected: `$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED.${stream}.*`,
    maxDeliveries: `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.*`,
    lane: (route, lane) => `${base}.${durability === "none" ? "n" : "q"}.${route}.${lane}`,
    consumer: (route, lane) => `${route}-${lane}`,
  };
}

/** Dead letters kept: so many, so long; the oldest go first. */
const deadLettersKept = 10_000;
const deadLettersKeptMs = 7 * 86_400_000;
const nanos = (ms: number): number => ms * 1_000_000;

const consumersKeptMs = 3_600_000;
const unlimited = -1;

const err = { consumerNotFound: 10014, streamNameInUse: 10058, streamNotFound: 10059 };

/** JetStream's error codes where a server or an account has less room than a stream reserves. */
const roomless: ReadonlySet<number | undefined> = new Set([10023, 10028, 10047]);

/**
 * Creates the missing parts of a queue. Existing ones stay, except that a front end that `mayUpdate` brings the limits up to its
 * own, and a worker the consumers of its `route`; a front end has none. Safe to repeat, on either side.
 * @returns the stream's identity: another one than last time means that the queue was lost. Its consumers may take longer.
 */
export async function ensureQueue(
  settings: QueueSettings,
  route: string | undefined,
  mayUpdate: boolean,
): Promise<{ readonly identity: string; readonly consumers: Promise<unknown> }> {
  const names = namesOf(settings);
  const identity = await ensureStream(settings, streamConfig(settings, names), {
    mayUpdate,
    keepsRules: route === undefined,
  });
  if (route === undefined) return { identity, consumers: Promise.resolve() };
  const consumers = lanes.map((lane) => ensureConsumer(settings, names, route, lane));
  return { identity, consumers: Promise.all(consumers) };
}

/** Creates the stream of dead letters where it is missing. */
export async function ensureDeadLetters(settings: QueueSettings): Promise<void> {
  await ensureStream(settings, deadStreamConfig(settings, namesOf(settings)), {});
}

/**
 * A stream on disk is known by its description, set once: `created` moves when the server restarts after an update. One in
 * memory keeps its description over a restart, and loses its items: there the moved `created` tells the truth.
 */
const identityOf = ({ durability }: QueueSettings, { config, created = "" }: StreamInfo): string => {
  const description = config?.description ?? "";
  return durability === "memory" || description === "" ? `${description} ${created}` : description;
};

async function ensureStream(
  settings: QueueSettings,
  config: Config & { readonly name: string },
  { mayUpdate = false, keepsRules = false }: { readonly mayUpdate?: boolean; readonly keepsRules?: boolean },
): Promise<string> {
  const info = await jetStream<StreamInfo>(settings, `STREAM.INFO.${config.name}`);
  if (info.error?.err_code === err.streamNotFound) {
    const described = { ...config, description: `sheaf ${crypto.randomUUID()}` };
    const { error, ...made } = await jetStream<StreamInfo>(settings, `STREAM.CREATE.${config.name}`, described);
    if (error === undefined) return identityOf(settings, made);
    // Another side created it first.
    if (error.err_code === err.streamNameInUse) return ensureStream(settings, config, {});
    throw roomless.has(error.err_code) ? withoutRoom(settings, config.name, error) : refused(config.name, error);
  }
  if (info.error !== undefined) throw refused(config.name, info.error);
  const { description, sealed } = info.config ?? {};
  if (sealed === true)
    throw new NatsQueueError("UNAVAILABLE", `${config.name} is sealed, for good: delete it, and it is created again.`);
  // After an election every front end looks: an update would need the whole cluster's leader too.
  if (mayUpdate && !isAsWanted(config, info.config)) await update(settings, { ...config, description });
  else if (keepsRules) await keepRules(settings, config, info.config);
  return identityOf(settings, info);
}

async function update(settings: QueueSettings, config: Config & { readonly name: string }): Promise<void> {
  const { error } = await jetStream(settings, `STREAM.UPDATE.${config.name}`, config);
  if (error !== undefined) throw refused(config.name, error);
}

/**
 * Takes back an operator's change of the rules that no front end has options for: with another one items vanish, or are never
 * confirmed, and their callers wait for their deadline. Other changes may be those of another front end: they are named.
 */
async function keepRules(
  settings: QueueSettings,
  wanted: Config & { readonly name: string },
  config: Config = {},
): Promise<void> {
  const { name } = wanted;
  const changed = (rules: Config): string[] => Object.keys(rules).filter((rule) => !isAsWanted({ [rule]: rules[rule] }, config)); // prettier-ignore
  const list = (rules: readonly string[]): string =>
    rules
      .map((rule) => `${rule} is ${JSON.stringify(config[rule])}, and not ${JSON.stringify(wanted[rule])}`)
      .join(", ");
  const broken = changed(streamRules);
  const others = changed(wanted).filter((rule) => !broken.includes(rule));
  const warn = (text: string): void => settings.warn(`sheaf: the queue ${settings.queue}: ${text}`);
  if (others.length > 0) warn(`${name} was changed: ${list(others)}. Start all front ends with the same options.`);
  if (broken.length === 0) return;
  await update(settings, { ...config, ...streamRules, name });
  warn(`${name} was changed: ${list(broken)}. This is taken back: it would lose items.`);
}

async function ensureConsumer(settings: QueueSettings, names: QueueNames, route: string, lane: string): Promise<void> {
  const { stream } = names;
  const name = names.consumer(route, lane);
  const config = {
    durable_name: name,
    ack_policy: "explicit",
    ack_wait: nanos(settings.ackWaitMs),
    max_deliver: settings.maxDeliver,
    // Workers ask for no more than they can run, and the stream holds no more than maxQueueSize: the default of 1000
    // would only starve large fleets.
    max_ack_pending: unlimited,
    max_waiting: 2048,
    filter_subject: names.lane(route, lane),
    // A version whose last worker has been gone for this long does not come back.
    inactive_threshold: nanos(consumersKeptMs),
  };
  const info = await jetStream<ConsumerInfo>(settings, `CONSUMER.INFO.${stream}.${name}`);
  if (info.error === undefined && isAsWanted(config, info.config)) return;
  if (info.error !== undefined && info.error.err_code !== err.consumerNotFound)
    throw refused(`${stream}.${name}`, info.error);
  const { error } = await jetStream(settings, `CONSUMER.DURABLE.CREATE.${stream}.${name}`, {
    stream_name: stream,
    config,
  });
  if (error !== undefined) throw refused(`${stream}.${name}`, error);
}

/**
 * Takes back an operator's limit of the items that are out at a time: workers ask for what they can run, and with a limit all but
 * a few would wait for their deadline.
 */
export async function unlimitConsumers(settings: QueueSettings, consumers: readonly ConsumerInfo[]): Promise<void> {
  const { stream } = namesOf(settings);
  for (const { name, config } of consumers) {
    const { max_ack_pending: limit = unlimited } = config ?? {};
    if (limit === unlimited) continue;
    const unlimitedConfig = { ...config, max_ack_pending: unlimited };
    const body = { stream_name: stream, config: unlimitedConfig };
    const { error } = await jetStream(settings, `CONSUMER.DURABLE.CREATE.${stream}.${name}`, body);
    if (error !== undefined) throw refused(`${stream}.${name}`, error);
    settings.warn(
      `sheaf: the queue ${settings.queue}: ${name} gave out at most ${limit} items at a time (max_ack_pending); this limit is taken back.`,
    );
  }
}

/** The server leaves out what is false. */
const isAsWanted = (wanted: Config, config: Config = {}): boolean =>
  Object.entries(wanted).every(([name, value]) => JSON.stringify(value) === JSON.stringify(config[name] ?? false));

/** What an item relies on: the queue refuses it, or keeps it until it is answered or too old. */
const streamRules: Config = {
  discard: "new",
  discard_new_per_subject: true,
  max_msgs: unlimited,
  no_ack: false,
};

const streamConfig = (settings: QueueSettings, names: QueueNames): Config & { readonly name: string } => ({
  name: names.stream,
  subjects: [names.lane("*", "*")],
  retention: "workqueue",
  storage: storageOf(settings),
  ...streamRules,
  max_msgs_per_subject: settings.maxQueueSize,
  max_bytes: settings.maxQueueBytes,
  max_age: nanos(settings.maxAgeMs),
  duplicate_window: nanos(Math.min(settings.maxAgeMs, 60_000)),
  num_replicas: settings.replicas,
});

const deadStreamConfig = (settings: QueueSettings, names: QueueNames): Config & { readonly name: string } => ({
  name: names.deadStream,
  subjects: [names.deadLetters],
  retention: "limits",
  storage: storageOf(settings),
  discard: "old",
  max_msgs: deadLettersKept,
  max_age: nanos(deadLettersKeptMs),
  num_replicas: settings.replicas,
});

const storageOf = ({ durability }: QueueSettings): string => (durability === "memory" ? "memory" : "file");

function refused(what: string, error: ApiError): NatsQueueError {
  if (isLeaderless(error)) return new NatsQueueError("UNAVAILABLE", `${what}: ${electing} (${error.description}).`);
  return new NatsQueueError("UNAVAILABLE", `JetStream refused ${what}: ${error.description}.`);
}

const withoutRoom = (
  { queue, maxQueueBytes }: QueueSettings,
  name: string,
  { description }: ApiError,
): NatsQueueError =>
  new NatsQueueError(
    "UNAVAILABLE",
    `JetStream refused ${name}: ${description}. The queue ${queue} reserves ${maxQueueBytes} bytes (maxQueueBytes): give ` +
      "nats-server a larger max_file_store or max_memory_store.",
  );

declare const crypto: { randomUUID(): string };
