// The entry of every worker process. Frames come and go on file descriptor 3.
import { Socket, type OnReadOpts, type SocketConstructorOpts } from "node:net";
import { FrameReader, writeFrame } from "../wire/frame.ts";
import { Host, type HostOptions } from "./host.ts";
import { Kind, message, packError, type Message } from "../wire/message.ts";
import { transferable, unpack, type Packed } from "../wire/pack.ts";

const host = new Host({
  port: { send },
  // Once a later write is taken, the kernel has taken all of this one.
  sent: () => (pipe.writableLength === 0 ? undefined : new Promise((resolve) => pipe.write("", () => resolve()))),
  memoryBytes: () => process.memoryUsage.rss(),
  exit: () => pipe.end(() => process.exit(0)),
});

const reader = new FrameReader((received) => {
  if (received.kind === Kind.load) host.load(unpack(received.packed as Packed, "own")[0] as HostOptions);
  else host.receive(received);
});

// Reads big rows straight into their place. (Its type lacks `onread`, which its documentation has.)
const pipeOptions: SocketConstructorOpts & { onread: OnReadOpts } = {
  fd: 3,
  readable: true,
  writable: true,
  onread: {
    buffer: () => reader.target(),
    callback: (bytes, into) => {
      reader.received(bytes, into);
      return true;
    },
  },
};
const pipe = new Socket(pipeOptions);
// The other end is gone: no one is left to work for.
pipe.on("close", () => process.exit(0));
pipe.on("error", () => process.exit(0));
pipe.resume();

// Ctrl-C in a terminal and some supervisors signal the whole group; the parent drains and then ends this process.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const) process.on(signal, () => undefined);

// The parent gives the callers this reason, as for a thread; the exit code alone says little.
process.on("uncaughtException", (error) => {
  send(message(Kind.uncaught, 0, 0, packError(error)));
  process.exit(1);
});

function send(sent: Message): void {
  // A model may write its next output over this one before the pipe has taken it: large rows are copied.
  const packed = sent.packed === undefined ? undefined : transferable(sent.packed).packed;
  writeFrame(pipe, { ...sent, packed });
}
