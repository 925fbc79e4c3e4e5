import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { python, pythonFolder } from "../peers/paths.mjs";
import { textEnvironment } from "./servers.mjs";

/** The model in Python without a server: one line of JSON a question, one line an answer. */
export async function startFloor(encoder, texts) {
  const child = spawn(python("text"), ["text_floor.py"], {
    cwd: pythonFolder,
    env: { ...process.env, ...textEnvironment(encoder) },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (question) => {
    child.stdin.write(`${JSON.stringify(question)}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error("the floor's process has ended");
    return JSON.parse(value);
  };
  return {
    embed: (input) => ask({ embed: input }),
    /** Texts a second of the best way to run these texts in views of that size, and of each way. */
    measure: async (className, view, seconds) => {
      const input = texts[className].map(({ text }) => text);
      const ways = await ask({ measure: input, view, seconds });
      const [best, textsPerS] = Object.entries(ways).reduce((most, way) => (way[1] > most[1] ? way : most));
      return { textsPerS, best, ways };
    },
    stop: () => child.kill(),
  };
}
