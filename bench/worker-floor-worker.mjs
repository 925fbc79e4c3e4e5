// The floor of bench/worker-round-trip.mjs: answers any message with `replyBytes` bytes, copied once. A thread gets one
// buffer; a process reads so many bytes from file descriptor 3 after a head of 16 that says how many, and how many back.
import { Socket } from "node:net";
import { parentPort } from "node:worker_threads";

const copied = (source, bytes) => {
  const copy = Buffer.allocUnsafeSlow(bytes);
  copy.set(source.subarray(0, bytes));
  return copy;
};
const source = Buffer.alloc(1 << 20, 1);

if (parentPort !== null) {
  parentPort.on("message", ({ replyBytes }) => {
    const { buffer } = copied(source, replyBytes);
    parentPort.postMessage({ buffer }, [buffer]);
  });
} else {
  const pipe = new Socket({ fd: 3, readable: true, writable: true });
  let missing = 0;
  let replyBytes = 0;
  pipe.on("data", (chunk) => {
    if (missing === 0) {
      missing = chunk.readDoubleLE(0) + 16;
      replyBytes = chunk.readDoubleLE(8);
    }
    missing -= chunk.length;
    if (missing === 0) pipe.write(copied(source, replyBytes));
  });
  pipe.on("end", () => process.exit(0));
}
