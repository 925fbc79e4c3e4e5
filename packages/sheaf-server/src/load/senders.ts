import { seededRandom } from "sheaf/internal/tuning";

/** Who sends each request, by its number, and under which names the senders are told apart in the result. */
export interface Senders {
  readonly names: readonly string[];
  /** The place of a request's sender among the names. */
  nameAt(index: number): number;
}

/** Number of draws, which are repeated in a cycle. */
const draws = 16_384;

/** Tenants with equal parts of a load and, last, one who floods; drawn at random, so that each sends a Poisson stream. */
export class TenantMix implements Senders {
  readonly names: readonly string[];
  /** Most senders, the flood included. */
  readonly count: number;
  readonly #tenants: number;
  readonly #drawn: Uint16Array;

  /** `floodShare`: of all requests, 0 without a flood. */
  constructor(tenants: number, floodShare: number, seed: number) {
    const random = seededRandom(seed);
    const hasFlood = floodShare > 0;
    this.#tenants = tenants;
    this.count = tenants + (hasFlood ? 1 : 0);
    this.names = ["tenants", ...(hasFlood ? ["flood"] : [])];
    this.#drawn = Uint16Array.from({ length: draws }, () =>
      random() < floodShare ? tenants : Math.floor(random() * tenants),
    );
  }

  /** The tenant of a request, from 0; the flood is the last. */
  tenantAt(index: number): number {
    return this.#drawn[index % draws]!;
  }

  nameAt(index: number): number {
    return this.tenantAt(index) < this.#tenants ? 0 : 1;
  }

  nameOf(tenant: number): string {
    return tenant < this.#tenants ? `tenant-${tenant + 1}` : "flood";
  }
}
