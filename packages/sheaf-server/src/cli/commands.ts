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

// A module is loaded only when its command is the one that was asked for: --help loads nothing heavy.
export const commands: readonly Entry[] = [
  {
    name: "serve",
    summary: "serve models over HTTP, in dynamic batches",
    load: () => import("./serve.ts").then(({ serve, serveCommand }) => ({ run: serve, define: serveCommand })),
  },
  {
    name: "proxy",
    summary: "let requests of an embeddings API share requests to it",
    load: () => import("./proxy.ts").then(({ proxy, proxyCommand }) => ({ run: proxy, define: proxyCommand })),
  },
  {
    name: "key",
    summary: "make an API key, and its entry for the file of keys",
    load: () => import("./key.ts").then(({ key, keyCommand }) => ({ run: key, define: keyCommand })),
  },
  {
    name: "config",
    summary: "print every setting and where its value came from",
    load: () => import("./config.ts").then(({ config, configCommand }) => ({ run: config, define: configCommand })),
  },
  {
    name: "bench",
    summary: "load a server or a model on schedule and report its latency",
    load: () =>
      import("./bench.ts").then(({ bench, benchCommand }) => ({ run: interruptible(bench), define: benchCommand })),
  },
  {
    name: "tune",
    summary: "measure the cost of batches and advise settings, or not to batch",
    load: () =>
      import("./tune.ts").then(({ tune, tuneCommand }) => ({ run: interruptible(tune), define: tuneCommand })),
  },
  {
    name: "simulate",
    summary: "ask what if, on the real batcher and a virtual clock",
    // It starts nothing that must be stopped, and its virtual clock leaves no turn in which a signal could arrive.
    load: () =>
      import("./simulate.ts").then(({ simulate, simulateCommand }) => ({ run: simulate, define: simulateCommand })),
  },
  {
    name: "demo",
    summary: "see what batching does, in a minute, offline",
    load: () =>
      import("./demo.ts").then(({ demo, demoCommand }) => ({ run: interruptible(demo), define: demoCommand })),
  },
  {
    name: "check-worker",
    summary: "see whether a worker in any language keeps to the protocol",
    load: () =>
      import("./check-worker.ts").then(({ checkWorker, checkWorkerCommand }) => ({
        run: checkWorker,
        define: checkWorkerCommand,
      })),
  },
];
