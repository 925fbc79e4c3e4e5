import type { Batcher, BatcherStats, CallOptions } from "sheaf";
import { embeddingRequests, type EmbeddingCall, type EmbeddingPart } from "sheaf/adapters/openai";
import type { Settings } from "../server/settings.ts";
import { policyOf } from "../server/strategy.ts";
import { WaitEstimate } from "../server/wait-estimate.ts";
import { embeddingsAnswer } from "./embeddings-answer.ts";
import { jsonOfReply, post, type UpstreamHeaders } from "./upstream.ts";

/** The batcher of one key and one model: what may share a request, a rate budget and a pause after 429. */
export class Lane {
  /** Of errors and metrics, which must not tell one key from another. */
  readonly name: string = laneName;
  readonly settings: Settings;
  readonly batcher: Batcher<EmbeddingCall, EmbeddingPart>;
  readonly #estimate: WaitEstimate;
  #open = 0;
  #waiting = 0;
  #countedAtMs = -Infinity;

  constructor(url: string, headers: UpstreamHeaders, settings: Settings) {
    this.settings = settings;
    const { upstreamRequestsPerMinute: runs, upstreamTokensPerMinute: weight } = settings;
    const { upstreamMaxReplyBytes: maxReplyBytes } = settings;
    const isLimited = runs !== undefined || weight !== undefined;
    this.batcher = embeddingRequests(
      async (body, { signal }) =>
        embeddingsAnswer(jsonOfReply(await post(url, headers, JSON.stringify(body), { signal, maxReplyBytes }))),
      {
        name: laneName,
        maxBatchSize: settings.maxBatchSize,
        maxBatchWeight: settings.maxBatchTokens,
        maxWaitMs: settings.maxWaitMs,
        maxQueueSize: settings.queueMaxSize,
        concurrency: settings.upstreamConcurrency,
        timeoutMs: settings.requestTimeoutMs,
        runTimeoutMs: settings.runTimeoutMs,
        policy: policyOf(settings),
        rateLimit: isLimited ? { runs, weight, perMs: 60_000 } : undefined,
      },
    );
    const limits = { slots: settings.upstreamConcurrency, maxBatchSize: settings.maxBatchSize };
    this.#estimate = new WaitEstimate(limits, () => this.batcher.stats());
    this.batcher.subscribe((record) => this.#estimate.observe(record));
  }

  /** The outcome of each call, in their order. Rejects where none of them was let in. */
  async settle(calls: readonly EmbeddingCall[], options: CallOptions): Promise<PromiseSettledResult<EmbeddingPart>[]> {
    this.#open++;
    try {
      return await this.batcher.settle(calls, options);
    } finally {
      this.#open--;
    }
  }

  get stats(): BatcherStats {
    return this.batcher.stats();
  }

  /** Items that wait; asked for each refusal, and so from figures that may be a moment old. */
  get waiting(): number {
    const nowMs = performance.now();
    if (nowMs - this.#countedAtMs > countMs) {
      this.#countedAtMs = nowMs;
      this.#waiting = this.stats.queued;
    }
    return this.#waiting;
  }

  /** How long what waits now will take to leave the queue, in milliseconds. */
  get drainMs(): number {
    return this.#estimate.drainMs(this.waiting);
  }

  /** Nobody waits for an answer. Asked of every lane when a new one needs room: statistics would take too long. */
  get isIdle(): boolean {
    return this.#open === 0;
  }
}

const laneName = "upstream";
const countMs = 20;
