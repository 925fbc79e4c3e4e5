import type { InferenceSession } from "./runtime.ts";

type Described = "inputNames" | "outputNames" | "inputMetadata" | "outputMetadata";

export interface OnnxSession extends Pick<InferenceSession, Described> {
  /** The batch sizes that are run before any item, so that nothing is compiled in traffic. None: every size is alike. */
  readonly fixedSizes: readonly number[];
  run(feeds: InferenceSession.FeedsType, fetches: readonly string[]): Promise<InferenceSession.ReturnType>;
  release(): Promise<void>;
}
