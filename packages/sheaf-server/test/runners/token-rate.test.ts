import assert from "node:assert/strict";
import { test } from "node:test";
import { TokenRate, textWeights } from "../../dist/runners/text/token-rate.js";

/** Texts of 5 to 400 characters, as a language has them, with their tokens. */
function* textsOf(count: number, letter: string, charactersAToken: number) {
  for (let i = 0; i < count; i++) {
    const length = 5 + ((i * 137) % 396);
    yield { text: letter.repeat(length), tokens: Math.ceil((length / charactersAToken) * (i % 2 === 0 ? 1.1 : 0.9)) };
  }
}

const isNear = (actual: number, expected: number): void =>
  assert.ok(Math.abs(actual / expected - 1) < 0.15, `${actual} is not about ${expected}`);

test("tokens per character follow the results, English and Chinese apart", () => {
  const rate = new TokenRate();
  const [english, chinese] = [[...textsOf(100, "a", 5)], [...textsOf(100, "文", 1.1)]];
  for (let i = 0; i < 100; i++) for (const { text, tokens } of [english[i]!, chinese[i]!]) rate.learn(text, tokens);
  isNear(rate.of("a".repeat(200)), 40);
  isNear(rate.of("文".repeat(200)), 200 / 1.1);
  isNear(rate.of("a".repeat(100) + "文".repeat(100)), 20 + 100 / 1.1);
});

test("an empty text and a count of zero leave rates that are no less than 0", () => {
  const rate = new TokenRate();
  rate.learn("", 7);
  for (let i = 0; i < 500; i++) rate.learn("a".repeat(50), 0);
  assert.equal(rate.of(""), 0);
  assert.ok(rate.of("a".repeat(50)) >= 0 && rate.of("a".repeat(50)) < 1);
});

test("a text weighs its tokens up to the most that are kept, and what reading it takes", () => {
  const { weigh } = textWeights({ maxTokens: 128, ownTokens: 0, side: "right" });
  assert.ok(weigh!("some words") < 10);
  assert.equal(weigh!("some words ".repeat(100)), 128 + 2);
  assert.equal(weigh!(" ".repeat(100_000)), 128 + 250);
});
