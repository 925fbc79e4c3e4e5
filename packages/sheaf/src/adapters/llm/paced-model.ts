import type { Batcher } from "../../core/contract/batcher.ts";
import { checkFunction, checkOptions } from "../../shared/checks.ts";
import { pacedCalls, pacedChecks, type PacedCallOptions, type PacedCalls, type PacedCallsOptions } from "./paced-calls.ts"; // prettier-ignore

/** Parameters of one call, as the AI SDK passes them. */
interface ModelParams {
  readonly prompt: unknown;
  readonly abortSignal?: AbortSignal | undefined;
  readonly providerOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined;
}

/** Middleware for `wrapLanguageModel` of AI SDK 6 and 7. */
export interface PacingMiddleware {
  readonly specificationVersion: "v3";
  wrapGenerate<T>(call: {
    readonly doGenerate: () => PromiseLike<T>;
    readonly params: ModelParams;
    readonly model: { readonly modelId: string };
  }): Promise<T>;
  wrapStream<T>(call: {
    readonly doStream: () => PromiseLike<T>;
    readonly params: ModelParams;
    readonly model: { readonly modelId: string };
  }): Promise<T>;
}

/** Options of `pacedModel`. */
export interface PacedModelOptions extends Omit<PacedCallsOptions<unknown>, "fairKey" | "estimate" | "name"> {
  /**
   * Called once for each model with its batcher, to subscribe to it or to export its metrics.
   * @default none
   */
  readonly onBatcher?: ((batcher: Pick<Batcher<never, unknown>, "name" | "stats" | "subscribe">) => void) | undefined;
}

interface ModelCall {
  readonly params: ModelParams;
  readonly go: () => PromiseLike<unknown>;
}

/**
 * `wrapLanguageModel({ model, middleware: pacedModel() })`: `generateText` and `streamText` wait for the limits of the model's
 * provider. `providerOptions: { sheaf: { tenant, priority, timeoutMs } }` of a call says how it waits. Limits are per model, unless
 * `rateLimit` is a limit that several share.
 */
export function pacedModel(given: PacedModelOptions = {}): PacingMiddleware {
  checkOptions(given, { ...pacedChecks, onBatcher: checkFunction });
  const { onBatcher, ...options } = given;
  const models = new WeakMap<object, PacedCalls<ModelCall, unknown>>();
  const of = (model: { readonly modelId: string }): PacedCalls<ModelCall, unknown> => {
    let calls = models.get(model);
    if (calls === undefined) {
      calls = pacedCalls(({ go }: ModelCall) => go(), {
        ...options,
        name: model.modelId,
        fairKey: ({ params }) => params.providerOptions?.["sheaf"]?.["tenant"],
      });
      models.set(model, calls);
      onBatcher?.(calls.batcher);
    }
    return calls;
  };
  const paced = <T>(model: { readonly modelId: string }, params: ModelParams, go: () => PromiseLike<T>): Promise<T> => {
    const { priority, timeoutMs } = (params.providerOptions?.["sheaf"] ?? {}) as PacedCallOptions;
    return of(model)(
      { params, go },
      { signal: params.abortSignal, priority, ...(timeoutMs !== undefined && { timeoutMs }) },
    ) as Promise<T>;
  };
  return {
    specificationVersion: "v3",
    wrapGenerate: ({ doGenerate, params, model }) => paced(model, params, doGenerate),
    wrapStream: ({ doStream, params, model }) => paced(model, params, doStream),
  };
}
