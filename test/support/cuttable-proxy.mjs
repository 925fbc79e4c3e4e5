import { connect, createServer } from "node:net";

/** A way to a TCP server, over loopback, that can be cut: open connections break and new ones are refused. */
export async function startCuttable(target) {
  const [host, port] = target.split(":");
  const open = new Set();
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) return void near.destroy();
    const far = connect(Number(port), host);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      open.add(from);
      from.setNoDelay(true);
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        open.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `nats://127.0.0.1:${server.address().port}`,
    cut: () => {
      isCut = true;
      for (const socket of open) socket.destroy();
    },
    repair: () => void (isCut = false),
    close: () => {
      for (const socket of open) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
