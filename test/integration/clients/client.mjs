// What the JavaScript programs share, as client.py does for Python: URLs as arguments, the texts as input, replies printed.
import process from "node:process";
import { text } from "node:stream/consumers";

export const given = JSON.parse(await text(process.stdin));

/** The error that a user of the client would see, as text. */
export const messageOf = (promise) => promise.then(() => "no error", (error) => `${error.name}: ${error.message}`); // prettier-ignore

export async function answer(version, replyOf) {
  const replies = [];
  for (const baseURL of process.argv.slice(2)) replies.push(await replyOf(baseURL));
  process.stdout.write(JSON.stringify({ version, replies }));
}
