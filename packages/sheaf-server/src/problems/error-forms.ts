import { problemBody, type Problem } from "./problem.ts";

/**
 * How the clients of a route read the body of an error: a problem document; the same with a `message`, for Cohere's; `error` as
 * a text; the same with TEI's `error_type`.
 */
export type ErrorForm = "problem" | "message" | "text" | "tei";

const formsByPath: readonly (readonly [RegExp, ErrorForm])[] = [
  [/^\/(?:v[12]\/)?rerank$|^\/v[12]\/embed$/, "message"],
  [/^\/(?:embed|embed_all|predict|info)$/, "tei"],
  [/^\/v2(?:\/|$)|^\/api\/|^\/(?:vectors|meta)$/, "text"],
];

/** The form of errors at this path; a query and a slash at its end change nothing. */
export function errorFormOf(url: string): ErrorForm {
  const path = url.replace(/\/?(?:\?.*)?$/s, "");
  return formsByPath.find(([pattern]) => pattern.test(path))?.[1] ?? "problem";
}

/** The content type and the body of a problem in this form. */
export function errorDocument(
  problem: Problem,
  form: ErrorForm,
  requestId: string,
): { readonly type: string; readonly body: string } {
  const { message } = problem;
  if (form === "text") return { type: "application/json", body: JSON.stringify({ error: message }) };
  if (form === "tei")
    return { type: "application/json", body: JSON.stringify({ error: message, error_type: teiTypeOf(problem) }) };
  const body = problemBody(problem, requestId);
  const full = form === "message" ? { ...body, message } : body;
  return { type: "application/problem+json", body: JSON.stringify(full) };
}

function teiTypeOf({ status }: Problem): string {
  if (status === 429) return "Overloaded";
  if (status === 503) return "Unhealthy";
  return status >= 500 ? "Backend" : "Validation";
}
