/** Paths that need no key and are served while draining. */
export const healthPaths: ReadonlySet<string> = new Set([
  "/health",
  "/livez",
  "/readyz",
  "/v2/health/live",
  "/v2/health/ready",
  "/.well-known/live",
  "/.well-known/ready",
  "/api/version",
]);
