import { setTimeout as sleep } from "node:timers/promises";
import { connect, type NatsConnection as Client } from "@nats-io/transport-node";
import type { NatsConnection, NatsMessage, NatsSubscription } from "sheaf/internal/nats";
import { within } from "sheaf/internal";
import type { Settings } from "../../settings/settings.ts";
import type { FleetLog } from "./fleet-log.ts";
import { connectionOptions, settingsAtFault } from "./connection-options.ts";

const connectAgainMs = 500;
const partingMs = 2000;
/** Most distinct warnings that are logged. */
const maxLogged = 100;

/** The oldest server whose JetStream has the functions that a queue needs. */
const oldestVersion = [2, 10] as const;

class TooOld extends Error {}

function tooOld(version = ""): TooOld | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [minMajor, minMinor] = oldestVersion;
  if (major > minMajor || (major === minMajor && minor >= minMinor)) return undefined;
  return new TooOld(`NATS_URL names a nats-server ${version}; a fleet needs ${oldestVersion.join(".")} or newer.`);
}

/**
 * The process's only connection to NATS. It opens once NATS can be reached, and closes with the server. Until then it looks like a
 * connection that is down: users can subscribe, and their requests wait.
 */
export class FleetConnection implements NatsConnection {
  /** Rejects if it can never open: wrong credentials, a missing file. */
  readonly opened: Promise<unknown>;
  readonly #client: Promise<Client>;
  #unavailableReason = "it connects";
  readonly #log: FleetLog;
  readonly #logged: Set<string> = new Set();
  #connection: Client | undefined;
  #isClosed = false;

  constructor(settings: Settings, log: FleetLog) {
    this.#log = log;
    this.opened = this.#client = this.#connect(settings);
    // Whoever awaits `opened` gets the error.
    this.#client.catch(() => (this.#isClosed = true));
  }

  /** Why it is not open yet; undefined once it has been. */
  get unavailableReason(): string | undefined {
    return this.#connection === undefined ? `not connected to NATS: ${this.#unavailableReason}` : undefined;
  }

  get info(): NatsConnection["info"] {
    return this.#connection?.info;
  }

  isClosed(): boolean {
    return this.#connection?.isClosed() ?? this.#isClosed;
  }

  /** Nothing is published on a connection that is down. */
  publish(...message: Parameters<NatsConnection["publish"]>): void {
    this.#connection?.publish(...(message as Parameters<Client["publish"]>));
  }

  subscribe(...to: Parameters<NatsConnection["subscribe"]>): NatsSubscription {
    if (this.#connection !== undefined) return this.#connection.subscribe(...to);
    let isWanted = true;
    const subscription = this.#client.then(
      (connection) => (isWanted ? connection.subscribe(...to) : undefined),
      () => undefined,
    );
    return {
      unsubscribe() {
        isWanted = false;
        void subscription.then((own) => own?.unsubscribe());
      },
      async drain() {
        isWanted = false;
        await (await subscription)?.drain();
      },
    };
  }

  async request(...request: Parameters<NatsConnection["request"]>): Promise<NatsMessage> {
    return (await this.#client).request(...(request as Parameters<Client["request"]>));
  }

  async flush(): Promise<void> {
    await (await this.#client).flush();
  }

  /** Reports the first connection as a reconnect too. */
  async *status(): AsyncGenerator<{ readonly type: string }> {
    const known = this.#connection;
    const connection = known ?? (await this.#client.catch(() => undefined));
    if (connection === undefined) return;
    if (known === undefined) yield { type: "reconnect" };
    yield* connection.status();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const connection = this.#connection;
    // A connection that is still opening closes by itself.
    if (connection === undefined) return void (await within(this.#client, partingMs));
    // Flushes pending messages, without waiting for a server that is down or hangs.
    await within(connection.drain(), partingMs);
    await within(connection.close(), partingMs);
  }

  async #connect(settings: Settings): Promise<Client> {
    const options = await connectionOptions(settings);
    while (!this.#isClosed) {
      try {
        const connection = await connect(options);
        const refusal = tooOld(connection.info?.version);
        if (this.#isClosed || refusal !== undefined) await connection.close();
        if (refusal !== undefined) throw refusal;
        if (this.#logged.size > 0) this.#log.info("connected to NATS");
        this.#connection = connection;
        void this.#watch(connection);
        return connection;
      } catch (error) {
        if (error instanceof TooOld) throw error;
        const { name, message } = error as Error;
        // A timeout says nothing about the credentials: the process may have been starved of CPU.
        if (/Authorization|Authentication|UserAuthentication/i.test(name) && !/timeout/i.test(message))
          throw new Error(`NATS refused the connection: ${message}. See NATS_URL, NATS_USER, NATS_CREDS_FILE.`, {
            cause: error,
          });
        this.#unavailableReason = `${message}${settingsAtFault(error, options)}`;
        this.#warnOnce(`NATS cannot be reached, and is tried again: ${this.#unavailableReason}`);
      }
      await sleep(connectAgainMs);
    }
    throw new Error("The server was closed before NATS could be reached.");
  }

  /** Logs lost connections and operations that the server forbids. */
  async #watch(connection: Client): Promise<void> {
    for await (const status of connection.status()) {
      if (this.#isClosed) return;
      if (status.type === "disconnect") this.#log.warn("connection to NATS lost");
      else if (status.type === "reconnect") this.#log.info("connected to NATS again");
      else if (status.type === "error") this.#warnOnce(`NATS says: ${status.error.message}`);
    }
  }

  #warnOnce(message: string): void {
    if (this.#logged.has(message) || this.#logged.size >= maxLogged) return;
    this.#logged.add(message);
    this.#log.warn(message);
  }
}
