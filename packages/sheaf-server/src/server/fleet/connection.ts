import { setTimeout as sleep } from "node:timers/promises";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import type { NatsClient } from "sheaf/adapters/nats";
import { within } from "../../shared/waiting.ts";
import type { Settings } from "../../settings/settings.ts";
import type { FleetLog } from "./fleet-log.ts";
import { connectionOptions } from "./connection-options.ts";

const connectAgainMs = 500;
const partingMs = 2000;
/** Different things that a server may say are wrong, each logged once. */
const maxLogged = 100;

/** The oldest server whose JetStream has the functions that a queue needs. */
const oldestVersion = [2, 9] as const;

class TooOld extends Error {}

function checkVersion(version = ""): void {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [minMajor, minMinor] = oldestVersion;
  if (major > minMajor || (major === minMajor && minor >= minMinor)) return;
  throw new TooOld(`NATS_URL names a nats-server ${version}; a fleet needs ${oldestVersion.join(".")} or newer.`);
}

/** The process's one connection to NATS: there sooner or later, and closed when the server is. */
export class FleetConnection {
  /** Rejects where it can never be: wrong credentials, a file that is not there. */
  readonly client: Promise<NatsClient>;
  /** Why it is not there yet. */
  unavailableReason: string | undefined = "it connects";
  readonly #log: FleetLog;
  readonly #logged: Set<string> = new Set();
  #connection: NatsConnection | undefined;
  #isClosed = false;

  constructor(settings: Settings, log: FleetLog) {
    this.#log = log;
    this.client = this.#connect(settings);
    // The code that needs it gets the error there.
    this.client.catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const connection = this.#connection;
    if (connection === undefined) return;
    // Sends messages on their way; a server that is down or hangs is not waited for.
    await within(connection.drain(), partingMs);
    await within(connection.close(), partingMs);
  }

  async #connect(settings: Settings): Promise<NatsClient> {
    const options = await connectionOptions(settings);
    while (!this.#isClosed) {
      try {
        const connection = (this.#connection = await connect(options));
        if (this.#isClosed) await connection.close();
        else checkVersion(connection.info?.version);
        if (this.#logged.size > 0) this.#log.info("NATS is connected");
        this.unavailableReason = undefined;
        void this.#watch(connection);
        return { connection, headers };
      } catch (error) {
        if (error instanceof TooOld) throw error;
        const { name, message } = error as Error;
        if (/Authorization|Authentication|UserAuthentication/i.test(name))
          throw new Error(`NATS refuses the connection: ${message}. See NATS_CREDS_FILE, NATS_USER, NATS_TOKEN.`, {
            cause: error,
          });
        this.unavailableReason = message;
        this.#warnOnce(`NATS cannot be reached, and is tried again: ${message}`);
      }
      await sleep(connectAgainMs);
    }
    throw new Error("The server was closed before NATS could be reached.");
  }

  /** Logs the connection's events: a cut, and operations that the server forbids. */
  async #watch(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (this.#isClosed) return;
      if (status.type === "disconnect") this.#log.warn("the connection to NATS is down");
      else if (status.type === "reconnect") this.#log.info("NATS is connected again");
      else if (status.type === "error") this.#warnOnce(`NATS says: ${status.error.message}`);
    }
  }

  #warnOnce(message: string): void {
    if (this.#logged.has(message) || this.#logged.size >= maxLogged) return;
    this.#logged.add(message);
    this.#log.warn(message);
  }
}
