// The model of `npm run prove -- chaos`: gives each item its own number doubled, or does what the item says.
import { defineWorker } from "sheaf/node";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export default defineWorker({
  async run(items) {
    const asked = (what) => items.find((item) => item.do === what);
    await sleep(2 + 0.2 * items.length);
    if (asked("crash") !== undefined) process.exit(7);
    // In a worker thread that is the whole server.
    if (asked("kill") !== undefined) process.kill(process.pid, "SIGKILL");
    if (asked("hang") !== undefined) await new Promise(() => undefined);
    if (asked("slow") !== undefined) await sleep(300);
    const thrower = asked("throw");
    if (thrower !== undefined) throw new Error(`thrown by ${thrower.id}`);
    return items.map(({ id, number, do: what }) =>
      what === "fail" ? new Error(`failed by ${id}`) : { id, number: 2 * number },
    );
  },
});
