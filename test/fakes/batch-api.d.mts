export type BatchFault = number | { readonly done: number } | "reset" | "done-reset" | "late" | "cut" | undefined;
export interface FakeBatch {
  readonly status: string;
  readonly lines: readonly { readonly body: { readonly input: string } }[];
  readonly metadata: unknown;
  readonly file: string;
  readonly output?: string;
  readonly error?: string;
}
export interface FakeBatchApi {
  readonly url: string;
  readonly files: ReadonlyMap<string, { readonly text: string }>;
  readonly batches: ReadonlyMap<string, FakeBatch>;
  /** How often each text was billed. */
  readonly paid: ReadonlyMap<string, number>;
  /** Requests by kind. */
  readonly counts: Readonly<Record<string, number>>;
  close(): Promise<void>;
}
export function batchApi(options?: {
  readonly fault?: (kind: string, n: number) => BatchFault;
  readonly outcome?: (n: number, batch: FakeBatch) => "completed" | "expired" | "failed" | "held";
  readonly runMs?: number;
  readonly onRequest?: (kind: string, n: number) => void;
}): Promise<FakeBatchApi>;
