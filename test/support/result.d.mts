export function assertResult(actual: unknown, expected: unknown, message?: string): void;
