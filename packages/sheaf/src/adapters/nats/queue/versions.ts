import type { WorkerInfo } from "./worker-registry.ts";

const longestNamed = 100;

/** Workers that run the same version of the same thing: items go to one version at a time. */
export interface ServedVersion {
  /** Where its items go: a token of its own in their subjects. */
  readonly route: string;
  readonly serves: string | undefined;
  readonly version: string | undefined;
  /** The highest of its workers. A version takes over with a higher one than the version before it. */
  readonly generation: number;
  readonly slots: number;
}

/** The same for every worker of a version, and for no other. */
export function routeOf(serves: string | undefined, version: string | undefined): string {
  if (serves === undefined && version === undefined) return "any";
  const text = JSON.stringify([serves ?? null, version ?? null]);
  return fnv1a(text, 0x811c9dc5) + fnv1a(text, 0x9747b28c);
}

/** Whether a worker's items and a front end's are of the same kind. Who says nothing fits all. */
export const fits = (serves: string | undefined, other: string | undefined): boolean =>
  serves === undefined || other === undefined || serves === other;

/** The versions that these workers serve, the current one first: every front end and worker finds the same one. */
export function versionsOf(workers: Iterable<WorkerInfo>): ServedVersion[] {
  const versions = new Map<string, ServedVersion>();
  for (const { route, serves, version, generation, slots, isServing } of workers) {
    if (!isServing) continue;
    const known = versions.get(route) ?? { route, serves, version, generation: 0, slots: 0 };
    versions.set(route, {
      ...known,
      generation: Math.max(known.generation, generation),
      slots: known.slots + slots,
    });
  }
  return [...versions.values()].sort(
    (a, b) => b.generation - a.generation || b.slots - a.slots || (a.route < b.route ? -1 : 1),
  );
}

function fnv1a(text: string, basis: number): string {
  let hash = basis;
  for (const byte of encoder.encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}

const encoder = new TextEncoder();

/** What workers serve, or its version, as a message names it. */
export const brief = (text = "nothing in particular"): string =>
  text.length > longestNamed ? `${text.slice(0, longestNamed)}…` : text;
