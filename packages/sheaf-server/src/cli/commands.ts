import type { Command } from "commander";
import type { CommandStreams } from "../shared/terminal.ts";
import { interruptible, type RunCommand } from "./signals.ts";

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
    async load() {
      const { serve, serveCommand } = await import("./serve.ts");
      return { run: serve, define: serveCommand };
    },
  },
  {
    name: "proxy",
    summary: "let requests of an embeddings API share requests to it",
    async load() {
      const { proxy, proxyCommand } = await import("./proxy.ts");
      return { run: proxy, define: proxyCommand };
    },
  },
  {
    name: "config",
    summary: "print every setting and where its value came from",
    async load() {
      const { config, configCommand } = await import("./config.ts");
      return { run: config, define: configCommand };
    },
  },
  {
    name: "bench",
    summary: "load a server or a model on schedule and report its latency",
    async load() {
      const { bench, benchCommand } = await import("./bench.ts");
      return { run: interruptible(bench), define: benchCommand };
    },
  },
  {
    name: "tune",
    summary: "measure what batches cost and advise settings, or not to batch",
    async load() {
      const { tune, tuneCommand } = await import("./tune.ts");
      return { run: interruptible(tune), define: tuneCommand };
    },
  },
  {
    name: "simulate",
    summary: "ask what if, on the real batcher and a virtual clock",
    async load() {
      // It starts nothing that must be stopped, and its virtual clock leaves no turn in which a signal could arrive.
      const { simulate, simulateCommand } = await import("./simulate.ts");
      return { run: simulate, define: simulateCommand };
    },
  },
  {
    name: "demo",
    summary: "see what batching does, in a minute, offline",
    async load() {
      const { demo, demoCommand } = await import("./demo.ts");
      return { run: interruptible(demo), define: demoCommand };
    },
  },
  {
    name: "check-worker",
    summary: "see whether a worker in any language keeps to the protocol",
    async load() {
      const { checkWorker, checkWorkerCommand } = await import("./check-worker.ts");
      return { run: checkWorker, define: checkWorkerCommand };
    },
  },
];
