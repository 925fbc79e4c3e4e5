import { masked } from "../../shared/masked.ts";
import { once } from "node:events";
import { connect } from "node:net";
import { CommandFailure, UsageError } from "../../shared/failure.ts";
import { httpTarget } from "./http-target.ts";
import { renderRequest } from "./request.ts";
import type { Bodies } from "../payload.ts";
import { oneLine } from "../result-table.ts";
import { succeeded, type RequestEnd } from "../target.ts";

const untrusted = "its certificate is not trusted here (NODE_EXTRA_CA_CERTS names a file of more authorities)";

const why: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there; check host and port, or start the server",
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "the name of the host cannot be resolved now",
  ETIMEDOUT: "the connection timed out",
  EHOSTUNREACH: "there is no route to the host",
  ENETUNREACH: "there is no route to the network",
  ECONNRESET: "it cut the connection without an answer",
  UND_ERR_SOCKET: "it closed the connection without an answer",
  UND_ERR_CONNECT_TIMEOUT: "the connection timed out",
  EPROTO: "it does not speak TLS; is it http:// instead of https://?",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS; is it http:// instead of https://?",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "it does not speak TLS; is it http:// instead of https://?",
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  CERT_HAS_EXPIRED: "its certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host",
  closed: "it closed the connection without an answer",
  "bad response": "the server does not speak HTTP/1.1",
};

/**
 * Sends one request before the load, so that a typing error is not measured for ten seconds.
 * @throws {CommandFailure} for an address that does not answer within `timeoutMs`, or with anything but 2xx.
 */
export async function probe(method: string, url: URL, request: Buffer, timeoutMs: number): Promise<void> {
  const target = httpTarget({ url, requests: [request], maxConnections: 1 });
  const outcome = await new Promise<RequestEnd>((resolve) => {
    const cancel = target.send(0, (result) => {
      clearTimeout(timer);
      resolve(result);
    });
    const timer = setTimeout(() => {
      cancel();
      resolve({ status: "timeout" });
    }, timeoutMs);
  });
  target.close();
  const { status, body } = outcome;
  if (succeeded(status)) return;
  const address = `${method} ${masked(url.href)}`;
  if (status === "timeout") throw silent(address, timeoutMs);
  if (typeof status === "string") throw unreachable(address, status);
  const detail = body === undefined || body === "" ? "" : `: ${oneLine(body)}`;
  throw new CommandFailure(
    `${address} answered ${status}${detail}. Load is measured on 2xx only: check URL and --payload.`,
  );
}

const silent = (address: string, timeoutMs: number): CommandFailure =>
  new CommandFailure(`${address} did not answer within ${timeoutMs} ms (--timeout).`);

const unreachable = (address: string, code: string): CommandFailure =>
  new CommandFailure(`${address} cannot be reached: ${why[code] ?? "the connection failed"} (${code}).`);

/**
 * A payload template for a server of the Open Inference Protocol, from its report about its model: words for text,
 * as many numbers as a row holds for floats, else the model's sample.
 * @throws {UsageError} that asks for `--payload` where the server does not say.
 */
export async function templateFor(
  origin: string,
  model: string | undefined,
  { headers, timeoutMs }: Asking,
  flag: "--payload" | "--item" = "--payload",
): Promise<string> {
  const { inputs, sample } = await inputsOf(origin, model, { headers, timeoutMs });
  const [input] = inputs ?? [];
  const isBytes = inputs?.length === 1 && input?.datatype === "BYTES";
  if (isBytes && (input.name === "text" || sample === undefined)) return '{"input": {{words 12}}}';
  const size = (input?.shape ?? []).slice(1).reduce((product, length) => product * length, 1);
  const numeric = /^FP(16|32|64)$/.test(input?.datatype ?? "");
  if (inputs?.length === 1 && numeric && input?.shape?.length === 2 && size >= 1)
    return `{"input": {{floats ${size}}}}`;
  // A text may hold a string that looks like a placeholder.
  if (sample !== undefined) return `{"input": ${JSON.stringify(sample).replaceAll("{{", String.raw`{\u007b`)}}`;
  const how =
    flag === "--item"
      ? "--item '{{floats 768}}'"
      : `--payload '{"input": {{floats 768}}}' or --payload-file FILE (or --method GET)`;
  throw new UsageError(`${origin} does not describe its inputs: give ${how}.`);
}

/** How a server is asked what to send: with the headers of the load, a key perhaps. */
interface Asking {
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

interface TensorInput {
  readonly name?: string;
  readonly datatype?: string;
  readonly shape?: readonly number[];
}

async function inputsOf(
  origin: string,
  model: string | undefined,
  { headers, timeoutMs }: Asking,
): Promise<{ readonly inputs?: TensorInput[] | undefined; readonly sample?: unknown }> {
  const json = async (path: string): Promise<unknown> => {
    const reply = await fetch(new URL(path, origin), { headers, signal: AbortSignal.timeout(timeoutMs) });
    return reply.ok ? reply.json() : undefined;
  };
  try {
    type Described = { readonly id?: string; readonly sample?: unknown };
    const list = ((await json("/v1/models")) as { data?: Described[] } | undefined)?.data ?? [];
    const described = model === undefined ? list[0] : list.find(({ id }) => id === model);
    const name = model ?? described?.id;
    if (name === undefined) return {};
    const metadata = (await json(`/v2/models/${encodeURIComponent(name)}`)) as { inputs?: TensorInput[] } | undefined;
    return { inputs: Array.isArray(metadata?.inputs) ? metadata.inputs : undefined, sample: described?.sample };
  } catch (error) {
    // An answer, though in no JSON.
    if (error instanceof SyntaxError) return {};
    const { name, cause } = error as { name?: unknown; cause?: { code?: unknown } };
    if (name === "TimeoutError") throw silent(origin, timeoutMs);
    const code = typeof cause?.code === "string" ? cause.code : await connectionError(new URL(origin), timeoutMs);
    if (code !== undefined) throw unreachable(origin, code);
    return {};
  }
}

/** fetch refuses ports that other protocols use (1, 25, 6000 …), without saying whether a server listens there. */
async function connectionError({ hostname, port }: URL, timeoutMs: number): Promise<string | undefined> {
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port), timeout: timeoutMs });
  socket.once("timeout", () => socket.destroy(Object.assign(new Error("timeout"), { code: "ETIMEDOUT" })));
  try {
    await once(socket, "connect");
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "no connection";
  } finally {
    socket.destroy();
  }
}

/** The requests of a run, by their number. */
export function requestsFor(
  url: URL,
  method: string,
  headers: Readonly<Record<string, string>>,
  bodies: Bodies | undefined,
): (index: number) => Buffer {
  const render = (body?: string): Buffer => renderRequest({ url, method, headers, body });
  if (typeof bodies === "function") return (index) => render(bodies(index));
  const requests = (bodies ?? [undefined]).map(render);
  return (index) => requests[index % requests.length]!;
}
