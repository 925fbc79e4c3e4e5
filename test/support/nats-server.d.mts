export interface RunningNats {
  /** `host:port` */
  readonly url: string;
  readonly monitorUrl: string | undefined;
  readonly pid: number;
  pause(): void;
  resume(): void;
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}
export function whyNoNats(): string | undefined;
export function startNats(more?: readonly string[]): Promise<RunningNats>;
export function freePort(): Promise<number>;
