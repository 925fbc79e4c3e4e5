/** The uploader, by a name that survives a rotated key. */
export interface Sender {
  readonly key: string | null;
  readonly tenant: string | null;
}

export interface StoredFile {
  readonly id: string;
  readonly sender: Sender;
  readonly bytes: number;
  readonly filename: string;
  readonly purpose: "batch" | "batch_output";
  /** Unix time in seconds, as clients see it. */
  readonly createdAt: number;
  readonly expiresAt: number;
  /** By the folder's clock. */
  readonly endsAtMs: number;
}

export type BatchStatus =
  "validating" | "in_progress" | "finalizing" | "completed" | "failed" | "expired" | "cancelling" | "cancelled";

export interface LineError {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly line: number | null;
}

/** Progress of a batch, as of the last time its results were flushed to disk. */
export interface Written {
  readonly outputBytes: number;
  readonly errorBytes: number;
  readonly completed: number;
  readonly failed: number;
  readonly tokens: number;
}

export interface StoredBatch {
  readonly id: string;
  readonly sender: Sender;
  readonly endpoint: string;
  readonly inputFileId: string;
  readonly outputFileId: string;
  readonly errorFileId: string;
  readonly completionWindow: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly endsAtMs: number;
  /** How long its results are kept. */
  readonly keepS: number;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly status: BatchStatus;
  /** Unix times in seconds: `in_progress_at`, `completed_at` … */
  readonly at: Readonly<Record<string, number>>;
  readonly total: number;
  readonly model: string | null;
  readonly written: Written;
  readonly errors: readonly LineError[];
  /** Why it waits. */
  readonly paused: string | null;
  /** Versions of the model that ran it, if several. */
  readonly versions: readonly string[];
}

/** Whether it is in a final state. */
export const isOver = ({ status }: StoredBatch): boolean =>
  status === "completed" || status === "failed" || status === "expired" || status === "cancelled";

export const nothingWritten: Written = { outputBytes: 0, errorBytes: 0, completed: 0, failed: 0, tokens: 0 };

/** Longest time for which a file is kept, in seconds. */
export const longestKeepS: number = 30 * 86_400;
