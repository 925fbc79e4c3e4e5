// Operations on a schedule that does not wait for answers, each a call of openai's client with its default retries.
import process from "node:process";
import OpenAI from "openai";
import { given } from "./client.mjs";

const { beforeS, surgeS, afterS, factor, patienceS, perS, model } = given;
const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", timeout: 1000 * patienceS });
const endS = beforeS + surgeS + afterS;
const begun = Array(endS).fill(0);
const answered = Array(endS).fill(0);
const call = () => client.embeddings.create({ model, input: "a text" });
// The first call loads most of the client's modules.
await call();
const startedAt = performance.now();

async function operate(second) {
  begun[second]++;
  try {
    await call();
    answered[second]++;
  } catch {
    // Not answered.
  }
}

const operations = [];
let dueS = 0;
let stoodStillMs = 0;
let lastAt = startedAt;
while (dueS < endS) {
  const now = performance.now();
  stoodStillMs = Math.max(stoodStillMs, now - lastAt);
  lastAt = now;
  while (dueS < endS && 1000 * dueS <= now - startedAt) {
    operations.push(operate(Math.floor(dueS)));
    const isSurge = dueS >= beforeS && dueS < beforeS + surgeS;
    dueS += 1 / (perS * (isSurge ? factor : 1));
  }
  await new Promise((resolve) => setTimeout(resolve, 5));
}
await Promise.all(operations);
process.stdout.write(JSON.stringify({ begun, answered, stoodStillMs }));
