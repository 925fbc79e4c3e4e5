import { serveFront } from "../server/front-server.ts";
import { endSignals, ordersOf } from "./processes/start.ts";

const { start, signals } = await ordersOf();
try {
  const stopped = new Promise<void>((resolve) => {
    for (const signal of endSignals) signals.on(signal, () => resolve());
  });
  const serving = serveFront(start);
  const front = await Promise.race([serving, stopped]);
  await stopped;
  process.exit(front === undefined || (await front.close()) ? 0 : 1);
} catch (error) {
  process.stderr.write(`sheaf serve: ${(error as Error).message}\n`);
  process.exit(1);
}
