import { hash } from "node:crypto";
import {
  createRateLimit,
  type Batcher,
  type BatcherError,
  type BatcherStats,
  type DetailedResult,
  type SharedRateLimit,
} from "sheaf";
import { estimateTokens, rateLimitHeaders } from "sheaf/adapters/openai";
import { embeddingRequests, isHang, type EmbeddingCall, type EmbeddingPart } from "sheaf/internal/openai";
import { canonicalJson } from "sheaf/internal";
import type { ModelCache } from "../cache/model-cache.ts";
import { forBatcher, type InferOptions } from "../http/call-options.ts";
import { runTimeoutOf, type Settings } from "../settings/settings.ts";
import { Accounts, senderOf } from "../tenants/accounts.ts";
import { hasTenants } from "../tenants/callers.ts";
import { whileRunning, type Caller } from "../tenants/caller.ts";
import type { Tenant } from "../tenants/tenants.ts";
import { strategies } from "../shared/strategies.ts";
import { embeddingsReply } from "./embeddings-reply.ts";
import { blamesInputs, jsonOfReply, post, type UpstreamHeaders } from "./upstream.ts";

/** OpenAI's limit on tokens in one request; another upstream's lower limit is learned. */
const maxRequestTokens = 300_000;

/** The batcher of one key and one model. Its calls share requests, a rate budget and a pause after 429. */
export class KeyBatcher {
  /** The name in errors and metrics, which must not reveal the key. */
  readonly name: string = laneName;
  readonly settings: Settings;
  readonly batcher: Batcher<EmbeddingCall, EmbeddingPart>;
  readonly #rateLimit: SharedRateLimit;
  readonly #cache: ModelCache | undefined;
  /** Senders whose texts make requests hang. */
  readonly #accounts: Accounts = new Accounts();
  readonly #callers: WeakMap<EmbeddingCall, Caller> = new WeakMap();

  readonly opener: object | string;
  readonly openedAtMs: number = performance.now();

  constructor(settings: Settings, cache: ModelCache | undefined, opener: object | string) {
    this.settings = settings;
    this.opener = opener;
    this.#cache = cache;
    const { upstreamRequestsPerMinute: runs, upstreamTokensPerMinute: weight } = settings;
    const { maxReplyBytes } = settings;
    const isKnown = runs !== undefined || weight !== undefined;
    this.#rateLimit = createRateLimit({ limits: isKnown ? { runs, weight, perMs: 60_000 } : undefined });
    this.batcher = embeddingRequests(
      (body, { signal, calls, onHeaders }) => {
        const { url, headers } = calls[0] as RoutedCall;
        const callers = calls.map((call) => this.#callers.get(call));
        return whileRunning(callers, async () => {
          const reply = await post(url, headers, JSON.stringify(body), { signal, maxReplyBytes });
          onHeaders(reply.headers);
          return embeddingsReply(jsonOfReply(reply));
        });
      },
      {
        name: laneName,
        maxBatchSize: settings.maxBatchSize,
        maxBatchWeight: maxRequestTokens,
        maxWaitMs: settings.maxWaitMs,
        maxQueueSize: settings.queueMaxSize,
        concurrency: settings.upstreamConcurrency,
        timeoutMs: settings.requestTimeoutMs,
        // Leaves time to find the text at fault. Other routes may take longer.
        runTimeoutMs: Math.min(runTimeoutOf(settings), Math.ceil(0.8 * settings.requestTimeoutMs)),
        policy: strategies[settings.schedulerStrategy].policy(settings),
        overloadOrder: "newest",
        ...(hasTenants(settings) && {
          fairKey: (call: EmbeddingCall) => this.#callers.get(call)?.tenant,
          shareOf: (tenant: unknown) => (tenant as Tenant | undefined)?.share ?? 1,
        }),
        dedupeKey: cache && ((call) => cache.keyOf(call, this.#callers.get(call)?.key)),
        dedupe: cache && "running",
        rateLimit: this.#rateLimit,
        shouldBisect: blamesInputs,
      },
    );
  }

  /** The outcomes of the calls, in order. Rejects if none was admitted. */
  async settle(calls: readonly RoutedCall[], options: InferOptions): Promise<PromiseSettledResult<EmbeddingPart>[]> {
    const { caller } = options;
    if (caller !== undefined) for (const call of calls) this.#callers.set(call, caller);
    const sender = senderOf(options);
    const isBad = this.#accounts.isBad(sender);
    const call = forBatcher(isBad ? { ...options, priority: "bulk", alone: true } : options);
    const run = async (
      missing: readonly RoutedCall[],
    ): Promise<PromiseSettledResult<DetailedResult<EmbeddingPart>>[]> => {
      const outcomes = await this.batcher.settleDetailed(missing, call);
      for (const outcome of outcomes) {
        if (outcome.status === "fulfilled") this.#accounts.passed(sender);
        else if (isHang(outcome.reason) && (isBad || isFound(outcome.reason as BatcherError)))
          this.#accounts.broke(sender, outcome.reason);
      }
      return outcomes;
    };
    const outcomes = await (this.#cache === undefined ? run(calls) : this.#cache.inferAll(calls, options, run));
    return outcomes.map((outcome) =>
      outcome.status === "rejected" ? outcome : { status: "fulfilled", value: outcome.value.value as EmbeddingPart },
    );
  }

  weigh({ input }: EmbeddingCall): number {
    return estimateTokens(typeof input === "string" || Array.isArray(input) ? input : JSON.stringify(input));
  }

  /** The upstream's remaining limit, in its own headers. */
  get limitHeaders(): Record<string, string> {
    return rateLimitHeaders(this.#rateLimit.stats());
  }

  get stats(): BatcherStats {
    return this.batcher.stats();
  }
}

/** A call with everything that separates it from others; different groups never share a request. */
export interface RoutedCall extends EmbeddingCall, Route {
  readonly group: string;
}

interface Route {
  readonly url: string;
  readonly headers: UpstreamHeaders;
}

/** Adds the group to a request's calls, computed once because parameters may be long. */
export function routed(calls: readonly EmbeddingCall[], route: Route): RoutedCall[] {
  const group = hash("sha256", canonicalJson([route.url, route.headers, calls[0]!.parameters]), "base64");
  return calls.map(({ input, parameters }) => ({ input, parameters, ...route, group }));
}

const laneName = "upstream";

/** Whether a search found this text, after its batch's run was abandoned. */
const isFound = ({ details }: BatcherError): boolean => details["size"] === 1 && details["runTimeoutMs"] === undefined;
