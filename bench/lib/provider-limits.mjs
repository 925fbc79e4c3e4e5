// Callers of an embeddings API with limits, on the virtual clock: their share of the limit, and its price in refusals.
import { readFileSync } from "node:fs";
import { Tiktoken } from "js-tiktoken/lite";
import cl100k from "js-tiktoken/ranks/cl100k_base";
import { fakeEmbeddingsApi } from "../../test/fakes/limited-embeddings-api.mjs";
import { virtualClock } from "../../packages/sheaf/dist/testing/index.js";
import { seededRandom } from "../../packages/sheaf/dist/internal/tuning.js";
import { filesBelow } from "../../scripts/lib/files.mjs";

const tokenizer = new Tiktoken(cl100k);
const minuteMs = 60_000;

/** Exact tokens of a text of `textsOf`: its number and its body are tokenized apart from each other in any case. */
const counts = new Map();
export function countTokens(text) {
  const at = text.indexOf(" ");
  return tokensOf(text.slice(0, at)) + tokensOf(text.slice(at));
}
function tokensOf(part) {
  let count = counts.get(part);
  if (count === undefined) counts.set(part, (count = tokenizer.encode(part, "all").length));
  return count;
}

const chinese =
  "今天天气很好，我们一起去公园散步。图书馆里有很多关于历史和科学的书籍。这个城市的交通非常方便，地铁和公共汽车四通八达。" +
  "她每天早上六点起床，先跑步半个小时，然后吃早饭。机器学习模型需要大量的数据和计算资源才能训练得很好。" +
  "会议将于下星期三在北京举行，请各位代表准时参加。人工智能正在改变医疗、教育和制造业的许多方面。" +
  "中国的茶文化有几千年的历史，各地的茶叶味道不同。数据库系统通过事务保证数据的一致性和完整性。";

/** What the texts are made of: `(random, characters) => body`, which begins with a letter. */
const kinds = {
  English: pieceOf(() => prose()),
  code: pieceOf(() => filesBelow("packages/sheaf/src/core", ".ts").map((file) => readFileSync(file, "utf8")).join("\n")), // prettier-ignore
  Chinese: pieceOf(() => chinese.repeat(40)),
  base64: (random, characters) =>
    "A" + Buffer.from(Array.from({ length: Math.ceil(characters * 0.75) }, () => Math.floor(random() * 256))).toString("base64"), // prettier-ignore
};

function pieceOf(read) {
  let text;
  return (random, characters) => {
    text ??= read();
    for (;;) {
      const from = Math.floor(random() * (text.length - characters));
      const piece = text.slice(from, from + characters).replace(/^[^\p{L}]+/u, "");
      if (piece !== "") return piece;
    }
  };
}

/** The paragraphs of the documents, without code and tables. */
function prose() {
  return filesBelow("docs/guide", ".md")
    .map((file) =>
      readFileSync(file, "utf8").replaceAll(/```[^]*?```|^\|.*$|^#.*$|<!--[^]*?-->|`[^`]*`|\]\([^)]*\)/gm, ""),
    )
    .join("\n")
    .replaceAll(/\s+/g, " ");
}

/** Endless texts of a kind, or of a mixture: 1,000 bodies of 80 to 1,200 characters, each text with a number of its own. */
export function textsOf(kind, seed) {
  const random = seededRandom(seed);
  const names = kind === "mixed" ? ["English", "code", "Chinese", "base64"] : [kind];
  const bodies = Array.from({ length: 1000 }, (_, i) => {
    const characters = Math.round(80 * 15 ** random());
    const name = names[i % names.length];
    return kinds[name](random, name === "Chinese" ? Math.ceil(characters / 3) : characters);
  });
  let next = 0;
  return () => `${++next} ${bodies[Math.floor(random() * bodies.length)]}`;
}

/**
 * `callers` who each call again as soon as they have their vector, over minutes of which the first is not counted.
 * `make(api, clock)` gives the batchers, and `batcherOf(caller)` says which one a caller uses, each in turn by default.
 * `during(api, clock)` may change limits meanwhile.
 */
export async function drive({ kind, api: apiOptions, make, callers = 1500, minutes = 6, seed = 1, during, batcherOf }) {
  const clock = virtualClock();
  const api = fakeEmbeddingsApi({ countTokens, clock, latencyMs: 300, ...apiOptions });
  const limitsOverTime = [{ atMs: 0, tokensPerMinute: apiOptions?.tokensPerMinute ?? 300_000 }];
  const batchers = make(api, clock);
  const pick = batcherOf ?? ((caller) => caller % batchers.length);
  const next = textsOf(kind, seed);
  const endsAtMs = minutes * minuteMs;
  const failures = new Map();
  const call = async (caller) => {
    while (clock.now() < endsAtMs) {
      try {
        await batchers[pick(caller)](next());
      } catch (error) {
        const name = error.code ?? error.status ?? error.name;
        failures.set(name, (failures.get(name) ?? 0) + 1);
        // One who fails tries again, a second later.
        await clock.sleep(1000);
      }
    }
  };
  const setLimits = (limits) => {
    limitsOverTime.push({ atMs: clock.now(), ...limits });
    api.setLimits(limits);
  };
  during?.({ ...api, setLimits }, clock);
  for (let caller = 0; caller < callers; caller++) void call(caller);
  const marks = [];
  for (let minute = 0; minute <= minutes; minute++) {
    clock.at(minute * minuteMs, () => marks.push(api.counts()));
  }
  const ended = new Promise((resolve) => clock.at(endsAtMs, resolve));
  await ended;
  const of = (name) => marks.slice(1).map((mark, i) => mark[name] - marks[i][name]);
  const counted = (name) => marks.at(-1)[name] - marks[1][name];
  return {
    tokens: counted("tokens"),
    /** Tokens that the API allowed in the minutes that count. */
    limit: allowed(limitsOverTime, minuteMs, endsAtMs),
    refused: counted("refused"),
    wrong: marks.at(-1).wrong,
    requests: counted("requests"),
    failed: [...failures.values()].reduce((sum, count) => sum + count, 0),
    failures: Object.fromEntries(failures),
    byMinute: { tokens: of("tokens"), refused: of("refused") },
  };
}

/** What flows in between two moments under limits that change. */
function allowed(limits, fromMs, untilMs) {
  return limits.reduce((sum, { atMs, tokensPerMinute }, i) => {
    const endMs = Math.min(untilMs, limits[i + 1]?.atMs ?? Infinity);
    return sum + (Math.max(0, endMs - Math.max(fromMs, atMs)) * tokensPerMinute) / minuteMs;
  }, 0);
}
