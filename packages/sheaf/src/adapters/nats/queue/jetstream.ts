import { NatsQueueError } from "../wire/errors.ts";
import type { QueueSettings } from "./options.ts";

const apiTimeoutMs = 5000;

/** JetStream's error codes while a stream, a consumer or the cluster has no leader. */
const leaderless: ReadonlySet<number | undefined> = new Set([10008, 10009, 10118, 10119]);

/** Why a queue with replicas takes nothing for some seconds. */
export const electing = "JetStream elects a new leader, for which most of its servers must be up";

export interface ApiError {
  readonly code: number;
  readonly err_code?: number;
  readonly description: string;
}

/** Whether an error of JetStream passes with an election. Without a number it is that of a server that leads no more. */
export const isLeaderless = ({ code, err_code }: ApiError): boolean =>
  leaderless.has(err_code) || (code === 503 && (err_code ?? 0) === 0);

/** The configuration of a stream or a consumer. */
export type Config = Readonly<Record<string, unknown>>;

/** The parts that are read of the server's description of a stream. */
export interface StreamInfo {
  readonly created?: string;
  readonly config?: Config & { readonly description?: string };
}

/** The parts that are read of the server's description of a consumer. */
export interface ConsumerInfo {
  readonly name?: string;
  readonly config?: Config & { readonly max_ack_pending?: number };
  readonly delivered?: { readonly consumer_seq: number; readonly stream_seq: number };
  /** An operator has paused it. */
  readonly paused?: boolean;
  readonly num_pending?: number;
  readonly num_ack_pending?: number;
  readonly num_redelivered?: number;
  readonly num_waiting?: number;
}

export interface ConsumerList {
  readonly consumers?: readonly ConsumerInfo[];
  /** In a cluster, the consumers without a leader, whose counts are unknown. */
  readonly missing?: readonly string[];
}

/** One call of the JetStream API. @throws {NatsQueueError} `UNAVAILABLE` without an answer. */
export async function jetStream<Reply>(
  { connection }: QueueSettings,
  call: string,
  body: object = {},
): Promise<Reply & { readonly error?: ApiError }> {
  try {
    const message = await connection.request(`$JS.API.${call}`, JSON.stringify(body), { timeout: apiTimeoutMs });
    return JSON.parse(new TextDecoder().decode(message.data)) as Reply & { readonly error?: ApiError };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new NatsQueueError(
      "UNAVAILABLE",
      `JetStream does not answer (${reason}). Is nats-server running with -js, and may this user publish to $JS.API.>?`,
    );
  }
}
