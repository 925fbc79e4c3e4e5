import type { Command } from "commander";
import type { CommandStreams } from "../shared/terminal.ts";
import type { RunCommand } from "./shared/command.ts";
import { interruptible } from "./signals.ts";

interface Entry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<{
    readonly run: RunCommand;
    /** The command with its flags, not run: the reference is compared with it. */
    readonly define: (streams: CommandStreams) => Command;
  }>;
}

// A command's module is loaded only when that command runs, so --help stays fast.
export const commands: readonly Entry[] = [
  {
    name: "serve",
    summary: "serve models over HTTP and gRPC in dynamic batches",
    load: () => import("./serve.ts").then(({ serve, serveCommand }) => ({ run: serve, define: serveCommand })),
  },
  {
    name: "proxy",
    summary: "batch the requests of many clients to an embeddings API",
    load: () => import("./proxy.ts").then(({ proxy, proxyCommand }) => ({ run: proxy, define: proxyCommand })),
  },
  {
    name: "key",
    summary: "generate an API key and its entry for API_KEYS_FILE",
    load: () => import("./key.ts").then(({ key, keyCommand }) => ({ run: key, define: keyCommand })),
  },
  {
    name: "ranges",
    summary: "measure the ranges of a text model's vectors, for int8 and uint8",
    load: () =>
      import("./ranges.ts").then(({ ranges, rangesCommand }) => ({
        run: interruptible(ranges),
        define: rangesCommand,
      })),
  },
  {
    name: "run-batch",
    summary: "run a file of requests without a server",
    load: () =>
      import("./run-batch.ts").then(({ runBatch, runBatchCommand }) => ({
        run: interruptible(runBatch),
        define: runBatchCommand,
      })),
  },
  {
    name: "config",
    summary: "print every setting and the source of its value",
    load: () => import("./config.ts").then(({ config, configCommand }) => ({ run: config, define: configCommand })),
  },
  {
    name: "bench",
    summary: "load-test a server or a model and report its latency",
    load: () =>
      import("./bench.ts").then(({ bench, benchCommand }) => ({ run: interruptible(bench), define: benchCommand })),
  },
  {
    name: "tune",
    summary: "measure what batches cost and recommend settings, or not to batch",
    load: () =>
      import("./tune.ts").then(({ tune, tuneCommand }) => ({ run: interruptible(tune), define: tuneCommand })),
  },
  {
    name: "recommend",
    summary: "recommend settings from a record of a server's calls, or to change nothing",
    load: () =>
      import("./recommend.ts").then(({ recommend, recommendCommand }) => ({
        run: interruptible(recommend),
        define: recommendCommand,
      })),
  },
];
