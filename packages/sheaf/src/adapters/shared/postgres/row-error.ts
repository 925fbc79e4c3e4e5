/**
 * Whether an error of PostgreSQL is the fault of single rows, by its SQLSTATE: data (22) and integrity (23), a key twice
 * in one upsert (21), a limit such as an index row's size (54), a view's WITH CHECK OPTION (44), RAISE in a trigger
 * (P0001) and a row-level security policy. Such a statement has written nothing, so its rows may be sent again one by
 * one. False for everything that is not the rows': a lost connection, a deadlock, serialization, permissions, syntax.
 */
export function isRowError(error: unknown): boolean {
  const { code, routine } = (error ?? {}) as { readonly code?: unknown; readonly routine?: unknown };
  if (typeof code !== "string" || !/^[0-9A-Z]{5}$/.test(code)) return false;
  if (code === "P0001") return true;
  // Row-level security has no code of its own: a missing permission for the table has the same, from another routine.
  if (code === "42501") return routine === "ExecWithCheckOptions";
  return ["21", "22", "23", "44", "54"].includes(code.slice(0, 2));
}
