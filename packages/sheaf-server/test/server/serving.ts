import type { TestContext } from "node:test";
import { createServer, type ModelDefinition, type SheafServer } from "../../dist/index.js";
import type { RunningServer } from "../../dist/server/server.js";
import type { Settings } from "../../dist/settings/settings.js";
import { get, opening, post, type Reply } from "../asking.js";
import { atEnd } from "../at-end.js";
import { behindFronts, type Reading } from "./fronts.js";

export interface Serving extends Reading {
  readonly url: string;
  get(path: string, headers?: Record<string, string>): Promise<Reply>;
  post(path: string, body: unknown, headers?: Record<string, string>, signal?: AbortSignal): Promise<Reply>;
}

/** How many fronts read the requests, as with HTTP_PROCESSES, though in this process, which has the models. */
export const fronts = Number(process.env["TEST_FRONTS"] ?? 1);

/** Why a test is skipped that is about a server of one process. */
export const alone = fronts > 1 && "behind fronts it is otherwise";

/** Serves on a free port until the test ends. */
export async function serving(
  t: TestContext,
  models: readonly ModelDefinition[],
  settings: Partial<Settings> = {},
): Promise<Serving> {
  const own = { port: 0, logLevel: "silent", ...settings } as const;
  const server = fronts > 1 ? await behindFronts(models, own, fronts) : inOneProcess(await createServer({ models, settings: own })); // prettier-ignore
  atEnd(t, () => server.close({ graceMs: 0 }));
  const url = await server.listen();
  return Object.assign(server, {
    url,
    get: (path: string, headers?: Record<string, string>) => get(url + path, headers),
    post: (path: string, body: unknown, headers?: Record<string, string>, signal?: AbortSignal) =>
      post(url + path, body, headers, signal),
  });
}

function inOneProcess(made: SheafServer): Reading {
  const { server } = made.app;
  return Object.assign(made as RunningServer, { port: server, readers: [server] });
}

/** Gives back the JSON that it gets. */
export const echo: ModelDefinition = {
  name: "echo",
  input: { kind: "json" },
  output: { kind: "json" },
  run: (items: unknown[]) => items,
};

/** Doubles three numbers; counts its runs and items. */
export function doubling(name = "double"): ModelDefinition & { runs: number; items: number } {
  const model = {
    name,
    input: { kind: "floats", length: 3 } as const,
    output: { kind: "vector", length: 3 } as const,
    runs: 0,
    items: 0,
    run: async (items: Float32Array[]) => {
      model.runs++;
      model.items += items.length;
      await new Promise((resolve) => setImmediate(resolve));
      return items.map((item) => item.map((number) => number * 2));
    },
  };
  return model;
}

/** A text's length and first character code as its vector. */
export function measuringTexts(name = "measure"): ModelDefinition {
  return {
    name,
    task: "embedding",
    input: { kind: "text", maxTokens: 128 },
    output: { kind: "vector", length: 2 },
    run: (texts: string[]) =>
      texts.map((text) => ({
        vector: Float32Array.of(text.length, text.charCodeAt(0)),
        tokens: text.split(" ").length,
        truncated: false,
      })),
  };
}

/** Runs one batch at a time, and only when told: `release()` ends the running one and lets all later ones through. */
export function gated(name = "gated"): ModelDefinition & { release(): void; readonly started: Promise<void> } {
  const { opened: released, open: release } = opening();
  const { opened: started, open: start } = opening();
  return {
    ...doubling(name),
    run: async (items: Float32Array[]) => {
      start();
      await released;
      return items;
    },
    release,
    started,
  };
}
