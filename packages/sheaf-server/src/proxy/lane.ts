import type { Batcher, BatcherStats } from "sheaf";
import { embeddingRequests, type EmbeddingCall, type EmbeddingPart } from "sheaf/adapters/openai";
import type { Settings } from "../server/settings.ts";
import { policyOf } from "../server/strategy.ts";
import { WaitEstimate } from "../server/wait-estimate.ts";
import { jsonOfReply, post, type UpstreamHeaders } from "./upstream.ts";

/** The batcher of one key and one model: what may share a request, a rate budget and a pause after 429. */
export class Lane {
  /** Of errors and metrics, which must not tell one key from another. */
  readonly name: string = laneName;
  readonly settings: Settings;
  readonly batcher: Batcher<EmbeddingCall, EmbeddingPart>;
  readonly #estimate: WaitEstimate;
  #waiting = 0;
  #countedAtMs = -Infinity;

  constructor(url: string, headers: UpstreamHeaders, settings: Settings) {
    this.settings = settings;
    const { upstreamRequestsPerMinute: runs, upstreamTokensPerMinute: weight } = settings;
    const isLimited = runs !== undefined || weight !== undefined;
    this.batcher = embeddingRequests(
      async (body, { signal }) => jsonOfReply(await post(url, headers, JSON.stringify(body), signal)),
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

  get isIdle(): boolean {
    const { queued, inFlight } = this.stats;
    return queued === 0 && inFlight === 0;
  }
}

const laneName = "upstream";
const countMs = 20;
