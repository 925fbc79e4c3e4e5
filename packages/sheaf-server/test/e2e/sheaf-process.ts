import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const entry = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

export interface SheafProcess {
  readonly child: ChildProcess;
  /** What it has written so far. */
  readonly output: { stdout: string; stderr: string };
  /** Exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

/** Starts the built command in an empty folder, without this process's environment; killed when the test ends. */
export function sheaf(t: TestContext, words: readonly string[], env: Record<string, string> = {}): SheafProcess {
  const cwd = mkdtempSync(join(tmpdir(), "sheaf-e2e-"));
  const child = spawn(process.execPath, [entry, ...words], { cwd, env: { PATH: process.env["PATH"] ?? "", ...env } });
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
  const ended = once(child, "close").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  t.after(async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(cwd, { recursive: true });
  });
  return { child, output, ended };
}

/** The URL of one that listens, whether it is ready or not. */
export async function listening({ child, output }: SheafProcess): Promise<string> {
  for (;;) {
    const url = /listening on (http:\/\/[^"]+)/.exec(output.stdout)?.[1];
    if (url !== undefined) return url;
    assert.equal(child.exitCode, null, output.stderr);
    await sleep(20);
  }
}

/** Serves on a free port; resolves with its URL once it is ready. */
export async function ready(served: SheafProcess): Promise<string> {
  const isReady = new Promise<string>((resolve) => {
    const look = (): void => {
      const url = /listening on (http:\/\/[^"]+)/.exec(served.output.stdout)?.[1];
      if (url !== undefined && served.output.stdout.includes('"msg":"ready"')) resolve(url);
    };
    served.child.stdout?.on("data", look);
    look();
  });
  const url = await Promise.race([isReady, served.ended]);
  if (typeof url === "string" && url.startsWith("http")) return url;
  throw new Error(`sheaf serve ended with ${url}: ${served.output.stderr}${served.output.stdout}`);
}
