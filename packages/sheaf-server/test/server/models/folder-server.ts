import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { openApp } from "../../../dist/http/app.js";
import type { ModelDefinition } from "../../../dist/index.js";
import type { ModelSource } from "../../../dist/server/models/deployment.js";
import { serverOn, type RunningServer } from "../../../dist/server/server.js";
import { defaultSettings, type Settings } from "../../../dist/settings/settings.js";
import { get, post, type Reply } from "../../asking.js";
import { atEnd } from "../../at-end.js";

export const key = "k";

export interface FolderServer extends RunningServer {
  readonly url: string;
  readonly folder: string;
  /** Writes a file of the folder, as a whole. */
  put(path: string, content: string | Uint8Array): void;
  get(path: string): Promise<Reply>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>;
  /** What POST /infer/{model} answers, or its status. */
  infer(model: string, input?: unknown): Promise<unknown>;
  load(model: string): Promise<Reply>;
  unload(model: string): Promise<Reply>;
  /** Puts a worker module there that gives this answer, and loads it. */
  replace(model: string, answer: string): Promise<void>;
}

/** A worker module that answers with `answer`, and whatever `more` says of it. */
export const answering = (answer: string, more = ""): string =>
  `import { existsSync, writeFileSync } from "node:fs";
  const gate = async (path) => { writeFileSync(path + "-waits", ""); while (!existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 5)); };
  export default { run: (items) => items.map(() => ${JSON.stringify(answer)}), ${more} };`;

/** Loads only once a file is there; writes one beside it when it begins. */
export const waitingFor = (path: string): string => `load: () => gate(${JSON.stringify(path)}),`;

/** Serves a folder of models with these files until the test ends; ready once each has loaded or failed. */
export async function servingFolder(
  t: TestContext,
  files: Readonly<Record<string, string | Uint8Array>>,
  {
    isReady = true,
    models = [],
    ...own
  }: Partial<Settings> & {
    readonly isReady?: boolean;
    readonly models?: readonly (ModelDefinition | ModelSource)[];
  } = {},
): Promise<FolderServer> {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-models-"));
  const put = (path: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    // In one step, and hidden until then: no reader sees half of it.
    const half = join(folder, ".half");
    writeFileSync(half, content);
    renameSync(half, join(folder, path));
  };
  for (const [path, content] of Object.entries(files)) put(path, content);
  const settings: Settings = { ...defaultSettings, port: 0, logLevel: "silent", apiKey: key, warmupBatches: 1, ...own };
  const server = await serverOn(openApp(settings), {
    models,
    settings,
    modelsFolder: { model: folder, settings: {} },
  });
  atEnd(t, async () => {
    await server.close({ graceMs: 0 });
    rmSync(folder, { recursive: true, force: true });
  });
  if (isReady) await server.ready();
  const url = await server.listen();
  const authorization = `Bearer ${key}`;
  const asking: FolderServer["post"] = (path, body = {}, headers = {}) =>
    post(url + path, body, { authorization, ...headers });
  const infer: FolderServer["infer"] = async (model, input = 1) => {
    const { status, json } = await asking(`/infer/${model}`, { input });
    return status === 200 ? json.output : status;
  };
  const load: FolderServer["load"] = (model) => asking(`/v2/repository/models/${model}/load`);
  return Object.assign(server, {
    url,
    folder,
    put,
    get: (path: string) => get(url + path, { authorization }),
    post: asking,
    infer,
    load,
    unload: (model: string) => asking(`/v2/repository/models/${model}/unload`),
    replace: async (model: string, answer: string) => {
      put(`${model}.mjs`, answering(answer));
      assert.equal((await load(model)).status, 200);
      assert.equal(await infer(model), answer);
    },
  });
}
