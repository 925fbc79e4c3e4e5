import { readFile } from "node:fs/promises";
import { credsAuthenticator, type ConnectionOptions } from "@nats-io/transport-node";
import type { Settings } from "../settings.ts";

const connectTimeoutMs = 5000;
const reconnectAfterMs = 250;

/** How NATS is reached. @throws {Error} naming the setting that can never be right: a file, an address. */
export async function connectionOptions(settings: Settings): Promise<ConnectionOptions> {
  const { natsUrl = "", natsUser, natsPassword, natsToken, natsCredsFile } = settings;
  const servers = serversOf(natsUrl);
  const tls = await tlsOf(settings);
  const usesTls = Object.keys(tls).length > 0 || servers.some((server) => server.startsWith("tls:"));
  return {
    servers,
    name: `sheaf ${settings.role}`,
    timeout: connectTimeoutMs,
    maxReconnectAttempts: -1,
    reconnectTimeWait: reconnectAfterMs,
    // Credentials that are changed at the server first and here later must not end a running fleet.
    ignoreAuthErrorAbort: true,
    // A server that hangs is noticed after two of these without an answer.
    pingInterval: 5000,
    ...(natsUser === undefined ? {} : { user: natsUser }),
    ...(natsPassword === undefined ? {} : { pass: natsPassword }),
    ...(natsToken === undefined ? {} : { token: natsToken }),
    ...(natsCredsFile === undefined ? {} : { authenticator: await credentialsOf(natsCredsFile) }),
    ...(usesTls ? { tls } : {}),
  };
}

function serversOf(natsUrl: string): string[] {
  const servers = natsUrl
    .split(",")
    .map((server) => server.trim())
    .filter((server) => server !== "");
  for (const server of servers) {
    const url = server.includes("://") ? server : `nats://${server}`;
    if (!/^(nats|tls):\/\//.test(url) || !URL.canParse(url) || new URL(url).hostname === "")
      throw new Error(`NATS_URL must be addresses such as nats://host:4222 or tls://host:4222, got "${server}".`);
  }
  if (servers.length === 0) throw new Error("NATS_URL is empty.");
  return servers;
}

async function credentialsOf(file: string): Promise<ReturnType<typeof credsAuthenticator>> {
  const authenticator = credsAuthenticator(await bytesOf("NATS_CREDS_FILE", file));
  try {
    authenticator("a nonce");
  } catch (error) {
    throw new Error(`NATS_CREDS_FILE holds no credentials: ${(error as Error).message}.`, { cause: error });
  }
  return authenticator;
}

async function tlsOf({
  natsTlsCaFile,
  natsTlsCertFile,
  natsTlsKeyFile,
}: Settings): Promise<{ ca?: string; cert?: string; key?: string }> {
  const textOf = async (name: string, file: string): Promise<string> => (await bytesOf(name, file)).toString("utf8");
  return {
    ...(natsTlsCaFile === undefined ? {} : { ca: await textOf("NATS_TLS_CA_FILE", natsTlsCaFile) }),
    ...(natsTlsCertFile === undefined ? {} : { cert: await textOf("NATS_TLS_CERT_FILE", natsTlsCertFile) }),
    ...(natsTlsKeyFile === undefined ? {} : { key: await textOf("NATS_TLS_KEY_FILE", natsTlsKeyFile) }),
  };
}

async function bytesOf(name: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new Error(`${name} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}
