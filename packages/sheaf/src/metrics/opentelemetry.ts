import type { Batcher } from "../core/contract/batcher.ts";
import type { CallOptions } from "../core/contract/options.ts";
import { wrapBatcher } from "../core/wrap-batcher.ts";
import type { BatchRecord } from "../policies/policy.ts";

/** The part of `trace` of @opentelemetry/api (1.0 or newer) that is used. */
export interface TraceLike {
  getTracer(name: string): TracerLike;
  /** The caller's span. Where it is absent no caller is linked. */
  getActiveSpan?(): SpanLike | undefined;
}

export interface TracerLike {
  startSpan(
    name: string,
    options: {
      readonly root: boolean;
      readonly startTime: number;
      readonly attributes: Record<string, string | number>;
      // The API's own type is an array that may be written to.
      readonly links: { context: never }[];
    },
  ): SpanLike;
}

export interface SpanLike {
  spanContext(): unknown;
  setAttributes(attributes: Record<string, string | number>): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  end(endTime?: number): void;
  isRecording(): boolean;
}

export interface OpenTelemetryOptions {
  readonly trace: TraceLike;
}

/** `SpanStatusCode.ERROR`, which is an enum of a package that is not imported. */
const errorStatus = 2;
/** A batch may be larger; SDKs keep 128 links of a span by default. */
const maxLinks = 128;

/** Tag of a call: its span, and when it was made. */
class Caller {
  readonly span: SpanLike;
  readonly calledAtMs: number = now();

  constructor(span: SpanLike) {
    this.span = span;
  }
}

/**
 * Traces a batcher: gives a batcher to call in its place. Every batch becomes a span `NAME batch` that links the spans
 * active where its items came in; each of these gets the attributes `sheaf.batch.id`, `sheaf.batch.size` and
 * `sheaf.queue_wait_ms`, of its last batch where it waits for several. A call without an active span costs one look; one
 * with a span uses its `tag`.
 *
 * The batch span is written when the batch ends, and is a root: it belongs to no caller more than to another. Close the
 * batcher it gives as you would the other.
 */
export function openTelemetry<In, Out>(batcher: Batcher<In, Out>, { trace }: OpenTelemetryOptions): Batcher<In, Out> {
  const tracer = trace.getTracer("sheaf");
  batcher.subscribe((record) => traceBatch(tracer, batcher.name, record));
  const tagged = (options: CallOptions | undefined): CallOptions | undefined => {
    const span = trace.getActiveSpan?.();
    return span?.isRecording() === true ? { ...options, tag: new Caller(span) } : options;
  };
  return wrapBatcher<In, In, Out>(batcher, { options: tagged });
}

function traceBatch(tracer: TracerLike, name: string, record: BatchRecord): void {
  const { batchId, size, reason, runMs, queueWaitMs, outcome, failedItems, errorCode, attempt, tags = [] } = record;
  const callers = tags.filter((tag) => tag instanceof Caller);
  const endedAtMs = now();
  for (const { span, calledAtMs } of callers) {
    if (!span.isRecording()) continue; // its caller has left
    const queueWaitMs = Math.max(0, endedAtMs - calledAtMs - runMs);
    span.setAttributes({ "sheaf.batch.id": batchId, "sheaf.batch.size": size, "sheaf.queue_wait_ms": queueWaitMs });
  }
  const linked = [...new Set(callers.map(({ span }) => span))].slice(0, maxLinks);
  const span = tracer.startSpan(`${name} batch`, {
    root: true,
    startTime: endedAtMs - runMs,
    attributes: {
      "sheaf.batcher": name,
      "sheaf.batch.id": batchId,
      "sheaf.batch.size": size,
      "sheaf.batch.reason": reason,
      "sheaf.batch.attempt": attempt,
      "sheaf.batch.failed_items": failedItems,
      "sheaf.queue_wait_ms": queueWaitMs.mean,
    },
    links: linked.map((caller) => ({ context: caller.spanContext() as never })),
  });
  if (outcome !== "ok" && (outcome !== "partial" || failedItems > 0)) {
    if (errorCode !== undefined) span.setAttributes({ "error.type": errorCode });
    const message = outcome === "partial" ? `${failedItems} of ${size} items failed` : "the batch function failed";
    span.setStatus({ code: errorStatus, message: errorCode ?? message });
  }
  span.end(endedAtMs);
}

/** Milliseconds since 1970, to the microsecond. */
const now = (): number => performance.timeOrigin + performance.now();
