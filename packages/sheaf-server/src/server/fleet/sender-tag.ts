import { createHash, randomUUID } from "node:crypto";
import { Tenant } from "../../tenants/tenants.ts";

const tokens = new WeakMap<object, string>();

/** A tenant has the same token at every gateway; each connection has its own. */
function tokenOf(sender: object): string {
  let token = tokens.get(sender);
  if (token === undefined) {
    token = sender instanceof Tenant ? createHash("sha256").update(sender.name).digest("base64url") : randomUUID();
    tokens.set(sender, token);
  }
  return token;
}

/** The tag of an item in the queue: its sender's token and its trace context. */
export const tagOf = (sender: object | string = "", traceparent: string = ""): string =>
  `${typeof sender === "string" ? sender : tokenOf(sender)} ${traceparent}`;

/** The parts of a tag. A front end outside a gateway sends only a trace context, or nothing. */
export function partsOf(tag: unknown): {
  readonly sender: string | undefined;
  readonly traceparent: string | undefined;
} {
  const [traceparent, sender] = (typeof tag === "string" ? tag : "").split(" ", 2).reverse();
  return { sender: sender || undefined, traceparent: traceparent || undefined };
}
