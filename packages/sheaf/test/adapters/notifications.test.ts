// What needs no push service; test/integration/expo.test.mjs has expo-server-sdk against a receiver.
import assert from "node:assert/strict";
import { test } from "node:test";
import { expoPush, multicast, PushError } from "../../dist/adapters/notifications/index.js";
import type { PushTicketLike } from "../../dist/adapters/notifications/expo.js";
import { manualClock, virtualClock } from "../../dist/testing/index.js";
import { endsOf, values, watch } from "../support/rig.ts";

interface Message {
  readonly to: string | string[];
  readonly body: string;
}
const message = (to: string, body = "hello"): Message => ({ to, body });

/** A client whose tickets the test decides. */
function client(ticketOf: (message: Message) => PushTicketLike = ({ to }) => ({ status: "ok", id: `id of ${to}` })) {
  const requests: Message[][] = [];
  return {
    requests,
    sendPushNotificationsAsync: async (messages: Message[]) => {
      requests.push(messages);
      return messages.map(ticketOf);
    },
  };
}

test("a ticket without a code is PUSH_FAILED; one with a code carries Expo's word", async () => {
  const push = expoPush(
    client(({ to }) =>
      to === "a"
        ? { status: "error", message: "no" }
        : { status: "error", message: "big", details: { error: "MessageTooBig" } },
    ),
  );
  const reasons: PushError[] = endsOf(await push.settle([message("a"), message("b")]));
  assert.deepEqual(reasons.map(({ code, message: text, to }) => [code, text, to]), [
    ["PUSH_FAILED", "no", "a"],
    ["MessageTooBig", "big", "b"],
  ]); // prettier-ignore
  assert.ok(reasons.every((reason) => reason instanceof PushError));
});

test("a message to several tokens is refused before anything is sent; the others go", async () => {
  const expo = client();
  const push = expoPush(expo);
  const [wrong, right] = endsOf(await push.settle([{ to: ["a", "b"], body: "hello" }, message("c")]));
  assert.match(wrong.message, /one recipient.*got an array of 2.*once for each token/);
  assert.equal(right.status, "ok");
  assert.deepEqual(expo.requests.map((messages) => messages.map(({ to }) => to)), [["c"]]); // prettier-ignore
});

test("1,100 messages: never more than 600 in any second, and none is lost", async () => {
  const clock = virtualClock();
  const sent: { readonly atMs: number; readonly count: number }[] = [];
  const expo = {
    sendPushNotificationsAsync: async (messages: Message[]) => {
      sent.push({ atMs: clock.now(), count: messages.length });
      await clock.sleep(80);
      return messages.map(() => ({ status: "ok" as const, id: "1" }));
    },
  };
  const push = expoPush(expo, { clock });
  await Promise.all(Array.from({ length: 1100 }, (_, n) => push(message(String(n)))));
  for (const { atMs: startAtMs } of sent) {
    const within = sent.filter(({ atMs }) => atMs >= startAtMs && atMs < startAtMs + 1000);
    assert.ok(within.reduce((sum, { count }) => sum + count, 0) <= 600);
  }
  assert.equal(sent.reduce((sum, { count }) => sum + count, 0), 1100); // prettier-ignore
  assert.ok(clock.now() < 2000, `the limit is used: ${clock.now()} ms`);
});

test("groupKey keeps projects apart", async () => {
  const expo = client();
  const push = expoPush(expo, { groupKey: ({ body }) => body });
  await Promise.all(Array.from({ length: 20 }, (_, n) => push(message(String(n), n % 2 === 0 ? "one" : "two"))));
  for (const messages of expo.requests) assert.equal(new Set(messages.map(({ body }) => body)).size, 1);
});

test("a wrong client and more than Expo takes are refused at construction", () => {
  assert.throws(() => expoPush({} as any), /expoPush needs a client with sendPushNotificationsAsync/);
  assert.throws(() => expoPush(client(), { maxBatchSize: 500 }), /RangeError: Expo accepts at most 100 messages/);
});

test("multicast: equal messages share a request, each recipient has its own outcome", async () => {
  const clock = manualClock();
  const requests: [string, string[]][] = [];
  const send = multicast(
    async ({ text }: { text: string }, to: string[]) => {
      requests.push([text, to]);
      return to.map((each) => (each === "bad" ? new Error("no such device") : `sent to ${each}`));
    },
    { clock, maxBatchSize: 500 },
  );
  const calls = ["a", "bad", "c"].flatMap((to) => [
    watch(send({ to, message: { text: "news" } })),
    watch(send({ to, message: { text: "alarm" } })),
  ]);
  await clock.settle();
  assert.deepEqual(new Map(requests), new Map([["news", ["a", "bad", "c"]], ["alarm", ["a", "bad", "c"]]])); // prettier-ignore
  assert.deepEqual(values(calls), ["sent to a", "sent to a", undefined, undefined, "sent to c", "sent to c"]);
  assert.equal((calls[2]!.reason as Error).message, "no such device");
});

test("multicast: messageKey says which messages are one; groupKey is refused with that advice", async () => {
  const requests: string[][] = [];
  const send = multicast(
    (_message: { id: number; at: number }, to: string[]) => {
      requests.push(to);
      return to;
    },
    { messageKey: ({ id }) => id },
  );
  await Promise.all([send({ to: "a", message: { id: 1, at: 5 } }), send({ to: "b", message: { id: 1, at: 6 } })]);
  assert.deepEqual(requests, [["a", "b"]]);
  assert.throws(() => multicast(async () => [], { groupKey: () => 1 }), /set messageKey, not groupKey/);
});

test("invalid tickets: an error of the message, or of all, and nothing is sent again", async () => {
  const answering = (tickets: unknown) => {
    let requests = 0;
    const push = expoPush({ sendPushNotificationsAsync: async () => (requests++, tickets as PushTicketLike[]) });
    return { push, requests: () => requests };
  };
  const partly = answering([{ status: "ok", id: "1" }, null]);
  const [first, second] = endsOf(await partly.push.settle([message("a"), message("b")]));
  assert.equal(first.status, "ok");
  assert.equal(String(second), "PushError: Expo gave no ticket for the message.");
  assert.equal(partly.requests(), 1);
  const none = answering(undefined);
  await assert.rejects(none.push(message("a")), /must return an array of tickets, got undefined/);
  assert.equal(none.requests(), 1);
  await assert.rejects(none.push(null as never), /a message has one recipient/);
});
