/** Why tests are skipped, for `test(name, { skip })`. @throws {Error} on CI, where nothing is. */
export function absent(message) {
  if (process.env.CI === "true") throw new Error(message);
  console.error(`SKIPPED: ${message}`);
  return message;
}
