import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { credsAuthenticator, type ConnectionOptions } from "@nats-io/transport-node";
import { masked } from "../../shared/masked.ts";
import type { Settings } from "../../settings/settings.ts";

/** Short, because the client first tries the server that it was connected to, and that one may hang. */
const connectTimeoutMs = 2000;
const reconnectAfterMs = 250;

/** Options for the connection to NATS. @throws {Error} naming a setting that can never work: a file, an address. */
export async function connectionOptions(settings: Settings): Promise<ConnectionOptions> {
  const { natsUrl = "", natsCredsFile } = settings;
  const { servers, ...inUrl } = serversOf(natsUrl);
  const { natsUser = inUrl.user, natsPassword = inUrl.password } = settings;
  const tls = await tlsOf(settings);
  const usesTls = Object.keys(tls).length > 0 || servers.some((server) => server.startsWith("tls:"));
  return {
    servers,
    name: `sheaf ${settings.role}`,
    timeout: connectTimeoutMs,
    maxReconnectAttempts: -1,
    reconnectTimeWait: reconnectAfterMs,
    // Credentials that change at the server first and here later must not end a running fleet.
    ignoreAuthErrorAbort: true,
    // After three unanswered pings the server counts as hung, and another one is tried.
    pingInterval: 1000,
    // As in NATS' own tools, a name without a password is a token.
    ...(natsUser === undefined ? {} : natsPassword === undefined ? { token: natsUser } : { user: natsUser }),
    ...(natsPassword === undefined ? {} : { pass: natsPassword }),
    ...(natsCredsFile === undefined ? {} : { authenticator: await credentialsOf(natsCredsFile) }),
    ...(usesTls ? { tls } : {}),
  };
}

interface Servers {
  readonly servers: string[];
  /** From the first address of the form `nats://user:password@host` or `nats://token@host`. */
  readonly user: string | undefined;
  readonly password: string | undefined;
}

function serversOf(natsUrl: string): Servers {
  const urls = natsUrl
    .split(",")
    .map((server) => server.trim())
    .filter((server) => server !== "")
    .map((server) => {
      const text = server.includes("://") ? server : `nats://${server}`;
      const url = /^(nats|tls):\/\//.test(text) && URL.canParse(text) ? new URL(text) : undefined;
      if (url !== undefined && url.hostname !== "") return url;
      throw new Error(
        `NATS_URL must be addresses such as nats://host:4222 or tls://host:4222, got "${masked(server)}".`,
      );
    });
  if (urls.length === 0) throw new Error("NATS_URL is empty.");
  const known = urls.find(({ username }) => username !== "");
  const textOf = (part = ""): string | undefined => (part === "" ? undefined : decodeURIComponent(part));
  return {
    servers: urls.map(({ protocol, host }) => `${protocol}//${host}`),
    user: textOf(known?.username),
    password: textOf(known?.password),
  };
}

async function credentialsOf(file: string): Promise<ReturnType<typeof credsAuthenticator>> {
  const authenticator = credsAuthenticator(await bytesOf("NATS_CREDS_FILE", file));
  usable("NATS_CREDS_FILE holds no credentials", () => authenticator("a nonce"));
  return authenticator;
}

function usable(otherwise: string, use: () => unknown): void {
  try {
    use();
  } catch (error) {
    throw new Error(`${otherwise}: ${(error as Error).message}.`, { cause: error });
  }
}

async function tlsOf({
  natsTlsCaFile,
  natsTlsCertFile,
  natsTlsKeyFile,
}: Settings): Promise<{ ca?: string; cert?: string; key?: string }> {
  const textOf = async (name: string, file: string): Promise<string> => (await bytesOf(name, file)).toString("utf8");
  const own = {
    ...(natsTlsCertFile === undefined ? {} : { cert: await textOf("NATS_TLS_CERT_FILE", natsTlsCertFile) }),
    ...(natsTlsKeyFile === undefined ? {} : { key: await textOf("NATS_TLS_KEY_FILE", natsTlsKeyFile) }),
  };
  const { cert, key } = own;
  if (cert !== undefined) usable("NATS_TLS_CERT_FILE holds no certificate", () => new X509Certificate(cert));
  if (key !== undefined) usable("NATS_TLS_KEY_FILE holds no private key", () => createPrivateKey(key));
  if (cert !== undefined && key !== undefined && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    throw new Error("NATS_TLS_KEY_FILE is not the key of NATS_TLS_CERT_FILE.");
  if (natsTlsCaFile === undefined) return own;
  const ca = await textOf("NATS_TLS_CA_FILE", natsTlsCaFile);
  usable("NATS_TLS_CA_FILE holds no certificate", () => new X509Certificate(ca));
  return { ...own, ca };
}

/** Names the settings that a failed connection points to; empty if to none. */
export function settingsAtFault(error: unknown, { tls }: ConnectionOptions): string {
  const { name, code = "", message } = error as Error & { code?: string };
  if (/ALTNAME/.test(code)) return ". NATS_URL names the server by a name that its certificate does not have.";
  if (/CERT|ISSUER|SIGNATURE/.test(code)) return ". See NATS_TLS_CA_FILE.";
  if (/does not support 'tls'/.test(message)) return ". See NATS_URL and the NATS_TLS_… settings: they ask for TLS.";
  // With TLS 1.3 a client does not learn that the server wanted a certificate.
  const asksForOwn = typeof tls === "object" && name === "TimeoutError";
  return asksForOwn ? ". Where the server asks for a certificate, see NATS_TLS_CERT_FILE and NATS_TLS_KEY_FILE." : "";
}

async function bytesOf(name: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new Error(`${name} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}
