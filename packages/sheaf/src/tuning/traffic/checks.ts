import { check, type Check } from "../../shared/checks.ts";

/** Checks for finite numbers; each throws a RangeError that says what is allowed and what it got. */
export function positive(name: string, value: unknown): number {
  return within(name, value, (number) => number > 0, "a number > 0");
}

export function notNegative(name: string, value: unknown): number {
  return within(name, value, (number) => number >= 0, "a number >= 0");
}

export const checkPattern: Check = (name, value) =>
  check(typeof value === "object" && value !== null, name, "{ pattern, … }", value, TypeError);

/** The longest span of a simulation, 30 years: sums of them stay numbers. */
const maxMs = 1e12;

export function spanMs(name: string, value: unknown): number {
  return within(name, value, (number) => number >= 0 && number <= maxMs, `a number of milliseconds, 0 to ${maxMs}`);
}

/** 0 … 1. */
export function share(name: string, value: unknown): number {
  return within(name, value, (number) => number >= 0 && number <= 1, "a share, 0 to 1");
}

export function within(name: string, value: unknown, isAllowed: (value: number) => boolean, allowed: string): number {
  const number = value as number;
  check(Number.isFinite(value) && isAllowed(number), name, allowed, value);
  return number;
}

/** An array, or a typed one. */
export const isList = (value: unknown): boolean => Array.isArray(value) || ArrayBuffer.isView(value);
