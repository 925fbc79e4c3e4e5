import assert from "node:assert/strict";
import { test } from "node:test";
import { openaiEmbeddings } from "../../dist/adapters/openai/index.js";
import { virtualClock } from "../../dist/testing/index.js";

/** A request in the bad phase: its error, or the headers of its success. */
interface Asked {
  readonly texts: number;
  readonly count: number;
  readonly atMs: number;
}
type Bad = (asked: Asked) => Error | Record<string, string>;

const refusal = (headers: Record<string, string> = {}): Error =>
  Object.assign(new Error("slow down"), { status: 429, headers });

/** 20 texts a second for one good minute, a bad phase, and a service that takes everything: what callers see then, by 10 s. */
async function afterBadPhase(bad: Bad, badMs: number, goodMs: number) {
  const clock = virtualClock();
  const [beginsAtMs, endsAtMs] = [60_000, 60_000 + badMs];
  let count = 0;
  const reply = async ({ input }: { input: string[] }) => {
    await clock.sleep(150);
    const isBad = clock.now() >= beginsAtMs && clock.now() < endsAtMs;
    const answer = isBad ? bad({ texts: input.length, count: ++count, atMs: clock.now() }) : {};
    if (answer instanceof Error) throw answer;
    const data = {
      data: input.map((_, index) => ({ index, embedding: [1] })),
      usage: { total_tokens: 10 * input.length },
    };
    return { data, response: { headers: answer } };
  };
  const client = {
    embeddings: {
      create(body: { input: string[] }) {
        const replied = reply(body);
        const data = replied.then((each) => each.data);
        data.catch(() => undefined);
        return Object.assign(data, { withResponse: () => replied });
      },
    },
  };
  const embed = openaiEmbeddings(client as never, { model: "m", clock, timeoutMs: 30_000 });
  const windows = Array.from({ length: goodMs / 10_000 }, () => ({ calls: 0, failed: 0, meanMs: 0 }));
  for (let atMs = 0; atMs < endsAtMs + goodMs; atMs += 50)
    clock.at(atMs, () => {
      const window = windows[Math.floor((atMs - endsAtMs) / 10_000)];
      const ended = (isFailed: boolean): void => {
        if (window === undefined) return;
        window.calls++;
        if (isFailed) window.failed++;
        else window.meanMs += (clock.now() - atMs - window.meanMs) / (window.calls - window.failed);
      };
      embed(`text ${atMs}, about as long as others`).then(
        () => ended(false),
        () => ended(true),
      );
    });
  await clock.idle();
  return windows;
}

const told = (limit: number, kind: string, reset: string): Record<string, string> => ({
  [`x-ratelimit-limit-${kind}`]: String(limit),
  [`x-ratelimit-remaining-${kind}`]: "0",
  [`x-ratelimit-reset-${kind}`]: reset,
});

for (const [name, bad, healsMs] of [
  [
    "a limit of ten requests a minute, told by 429s alone",
    ({ count }) => (count % 11 > 0 ? refusal({ ...told(10, "requests", "6s"), "retry-after": "6" }) : {}),
    90_000,
  ],
  [
    "a limit of 100 tokens a minute, told by 429s alone",
    () => refusal({ ...told(100, "tokens", "1s"), "retry-after": "5" }),
    90_000,
  ],
  ["nothing left for a day, told with a success", () => told(200, "requests", "24h0m0s"), 180_000],
  ["nine of ten requests refused without a word of a limit", ({ count }) => (count % 10 > 0 ? refusal() : {}), 20_000],
  ["every request refused without a word of a limit", () => refusal(), 20_000],
] as readonly (readonly [string, Bad, number])[])
  // prettier-ignore
  test(`learned limits end with their cause: ${name}`, async () => {
    const windows = await afterBadPhase(bad, 150_000, healsMs + 30_000);
    for (const { calls, failed, meanMs } of windows.slice(healsMs / 10_000)) {
      assert.equal(failed, 0, JSON.stringify(windows));
      assert.ok(calls === 200 && meanMs < 190, JSON.stringify(windows));
    }
  });
