import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import {
  connect,
  credsAuthenticator,
  headers,
  type ConnectionOptions,
  type NatsConnection,
} from "@nats-io/transport-node";
import type { NatsClient } from "sheaf/adapters/nats";
import type { Settings } from "../settings.ts";

const connectTimeoutMs = 5000;
const connectAgainMs = 500;
const reconnectAfterMs = 250;
const partingMs = 2000;

/** The process's one connection to NATS: there sooner or later, and closed when the server is. */
export class FleetConnection {
  /** Rejects where it can never be: wrong credentials, a file that is not there. */
  readonly client: Promise<NatsClient>;
  /** Why it is not there yet. */
  trouble: string | undefined = "it connects";
  #connection: NatsConnection | undefined;
  #isClosed = false;

  constructor(settings: Settings) {
    this.client = this.#connect(settings);
    // Whoever needs it hears of it there.
    this.client.catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const connection = this.#connection;
    if (connection === undefined) return;
    // Sends what is on its way; a server that is down or hangs is not waited for.
    await Promise.race([connection.drain().catch(() => undefined), sleep(partingMs, undefined, { ref: false })]);
    await Promise.race([connection.close().catch(() => undefined), sleep(partingMs, undefined, { ref: false })]);
  }

  async #connect(settings: Settings): Promise<NatsClient> {
    const options = await connectionOptions(settings);
    for (;;) {
      try {
        this.#connection = await connect(options);
        if (this.#isClosed) await this.#connection.close();
        this.trouble = undefined;
        return { connection: this.#connection, headers };
      } catch (error) {
        const { name, message } = error as Error;
        if (/Authorization|Authentication|UserAuthentication/i.test(name) || this.#isClosed)
          throw new Error(`NATS refuses the connection: ${message}. See NATS_CREDS_FILE, NATS_USER, NATS_TOKEN.`, {
            cause: error,
          });
        this.trouble = message;
      }
      await sleep(connectAgainMs);
    }
  }
}

async function connectionOptions(settings: Settings): Promise<ConnectionOptions> {
  const { natsUrl = "", natsUser, natsPassword, natsToken, natsCredsFile } = settings;
  const { natsTlsCaFile, natsTlsCertFile, natsTlsKeyFile } = settings;
  const usesTls = [natsTlsCaFile, natsTlsCertFile, natsTlsKeyFile].some(Boolean) || natsUrl.startsWith("tls:");
  return {
    servers: natsUrl.split(",").map((server) => server.trim()),
    name: `sheaf ${settings.role}`,
    timeout: connectTimeoutMs,
    maxReconnectAttempts: -1,
    reconnectTimeWait: reconnectAfterMs,
    // A server that hangs is noticed after two of these without an answer.
    pingInterval: 5000,
    ...(natsUser === undefined ? {} : { user: natsUser }),
    ...(natsPassword === undefined ? {} : { pass: natsPassword }),
    ...(natsToken === undefined ? {} : { token: natsToken }),
    ...(natsCredsFile === undefined ? {} : { authenticator: credsAuthenticator(await bytesOf(natsCredsFile)) }),
    ...(usesTls
      ? {
          tls: {
            ...(natsTlsCaFile === undefined ? {} : { caFile: natsTlsCaFile }),
            ...(natsTlsCertFile === undefined ? {} : { certFile: natsTlsCertFile }),
            ...(natsTlsKeyFile === undefined ? {} : { keyFile: natsTlsKeyFile }),
          },
        }
      : {}),
  };
}

async function bytesOf(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new Error(`NATS_CREDS_FILE can not be read: ${(error as Error).message}`, { cause: error });
  }
}
