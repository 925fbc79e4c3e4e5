import assert from "node:assert/strict";
import { test } from "node:test";
import { headers } from "@nats-io/transport-node";
import { manualClock } from "../../../dist/testing/index.js";
import { Publisher } from "../../../dist/adapters/nats/front-end/publisher.js";

const callOf = (id: string): never =>
  ({ head: { f: "_INBOX.front", i: id, d: 1000 }, payload: new Uint8Array(8), lane: "bulk", route: "any" }) as never;

/** A publisher whose connection notes what it is given, or throws `failure`. */
function publisherTo(seen: string[], { durability, failure }: { durability: string; failure?: Error }) {
  const clock = manualClock();
  const publish = (subject: string, _payload: unknown, { reply }: { reply: string }): boolean => {
    if (failure !== undefined) throw failure;
    seen.push(`${subject} ${reply}`);
    return true;
  };
  const settings = { queue: "echo", clock, headers, durability } as never;
  const publisher = new Publisher(
    settings,
    { publish } as never,
    { inbox: "_INBOX.front", name: "echo", load: undefined as never, holdMs: 0 },
    {
      accepted: (call) => void seen.push(`accepted ${call?.head.i}`),
      refused: ({ head }, { message }) => void seen.push(`refused ${head.i}: ${message}`),
      unanswered: () => undefined,
      missing: () => undefined,
    },
  );
  return { publisher, clock };
}

test("calls of one turn are published at its end, and one that has ended by then is not", () => {
  const seen: string[] = [];
  const { publisher, clock } = publisherTo(seen, { durability: "file" });
  const [first, gone, last] = [callOf("1"), callOf("2"), callOf("3")];
  for (const call of [first, gone, last]) publisher.publish(call);
  assert.deepEqual(seen, []);
  assert.equal(publisher.unanswered().length, 3, "a cut connection would fail all of them");
  publisher.forget(gone);
  clock.advance(0);
  assert.deepEqual(seen, ["sheaf.echo.q.any.bulk _INBOX.front.a1", "sheaf.echo.q.any.bulk _INBOX.front.a3"]);
  publisher.stop();
});

test("a repeated item of which the first is still being stored is not refused, and repeated again", () => {
  const seen: string[] = [];
  const { publisher, clock } = publisherTo(seen, { durability: "file" });
  const call = callOf("1");
  publisher.publish(call);
  clock.advance(0);
  const error = { code: 409, err_code: 10158, description: "duplicate message id is in process" };
  publisher.acknowledged(call, { data: new TextEncoder().encode(JSON.stringify({ error })) } as never);
  clock.advance(3000);
  assert.deepEqual(seen.slice(0, 2), [
    "sheaf.echo.q.any.bulk _INBOX.front.a1",
    "sheaf.echo.q.any.bulk _INBOX.front.a1",
  ]);
  publisher.stop();
});

test("core NATS confirms nothing: what was published counts as taken", () => {
  const seen: string[] = [];
  const { publisher, clock } = publisherTo(seen, { durability: "none" });
  publisher.publish(callOf("1"));
  clock.advance(0);
  assert.deepEqual(seen.slice(1), ["accepted 1"]);
  assert.deepEqual(publisher.unanswered(), []);
});

test("a call that the client refuses to publish fails alone", () => {
  const seen: string[] = [];
  const { publisher, clock } = publisherTo(seen, { durability: "file", failure: new Error("too large") });
  for (const id of ["1", "2"]) publisher.publish(callOf(id));
  clock.advance(0);
  assert.deepEqual(seen, ["refused 1: too large", "refused 2: too large"]);
});
