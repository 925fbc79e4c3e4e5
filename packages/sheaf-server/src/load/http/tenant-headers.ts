import type { TenantMix } from "../senders.ts";
import { renderHeader } from "./request.ts";

/** Lines of a header that say who sends a request. */
export interface TenantHeaders {
  /** Of the first tenant, who never floods. */
  readonly first: Buffer;
  /** Of the request with this number. */
  at(index: number): Buffer;
}

/**
 * A name in this header, or a key of its own for each tenant.
 * @throws {RangeError} for a header that HTTP cannot carry.
 */
export function tenantHeaders(mix: TenantMix, header: string, keys: readonly string[] | undefined): TenantHeaders {
  const lines = Array.from({ length: mix.count }, (_, tenant) =>
    Buffer.from(
      keys === undefined
        ? renderHeader(header.toLowerCase(), mix.nameOf(tenant))
        : renderHeader("authorization", `Bearer ${keys[tenant]}`),
    ),
  );
  return { first: lines[0]!, at: (index) => lines[mix.tenantAt(index)]! };
}
