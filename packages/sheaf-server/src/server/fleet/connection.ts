import { setTimeout as sleep } from "node:timers/promises";
import { connect, type NatsConnection as Client } from "@nats-io/transport-node";
import type { NatsConnection, NatsMessage, NatsSubscription } from "sheaf/internal/nats";
import { within } from "sheaf/internal";
import type { Settings } from "../../settings/settings.ts";
import type { FleetLog } from "./fleet-log.ts";
import { connectionOptions, settingsAtFault } from "./connection-options.ts";

const connectAgainMs = 500;
const partingMs = 2000;
/** Most warnings that are logged, each of them once. */
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
 * The process's one connection to NATS. It opens when NATS can be reached, and closes with the server. Until it is open its users
 * see a connection that is down: they can subscribe, and their requests wait.
 */
export class FleetConnection implements NatsConnection {
  /** Rejects where it can never be: wrong credentials, a file that is not there. */
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
    // The code that needs it gets the error there.
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

  /** Its first connection is a reconnect too. */
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
    // A connection that is still opening closes itself.
    if (connection === undefined) return void (await within(this.#client, partingMs));
    // Sends messages on their way; a server that is down or hangs is not waited for.
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
        // Where a process gets no processor for a moment, NATS names a timeout: its credentials may be right.
        if (/Authorization|Authentication|UserAuthentication/i.test(name) && !/timeout/i.test(message))
          throw new Error(`NATS refused the connection: ${message}. See NATS_CREDS_FILE, NATS_USER, NATS_TOKEN.`, {
            cause: error,
          });
        this.#unavailableReason = `${message}${settingsAtFault(error, options)}`;
        this.#warnOnce(`NATS cannot be reached, and is tried again: ${this.#unavailableReason}`);
      }
      await sleep(connectAgainMs);
    }
    throw new Error("The server was closed before NATS could be reached.");
  }

  /** Logs the connection's events: a cut, and operations that the server forbids. */
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
