import type { RunningNats } from "./nats-server.mjs";

export interface ClusterServer extends RunningNats {
  readonly name: string;
}

export interface RunningCluster {
  readonly servers: readonly ClusterServer[];
  /** `host:port,host:port,host:port` */
  readonly url: string;
  ready(): Promise<unknown>;
  leaderOf(stream: string): Promise<ClusterServer | undefined>;
  stop(): Promise<unknown>;
}
export function startNatsCluster(): Promise<RunningCluster>;
