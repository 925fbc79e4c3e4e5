// The NATS server of a test file.
import { after, before } from "node:test";
import { startNats, whyNoNats, type RunningNats } from "../../../../test/support/nats-server.mjs";

export { startNats };

export const skip: string | false = whyNoNats() ?? false;

export let nats: RunningNats;
before(async () => {
  if (skip === false) nats = await startNats();
});
after(() => nats?.stop());
