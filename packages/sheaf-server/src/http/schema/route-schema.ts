import type { ErrorForm } from "../../problems/error-forms.ts";
import { Type, type Schema } from "./json-schema.ts";

/** A route as OpenAPI shows it. Bodies are checked by their fields instead, with better messages. */
export interface RouteSchema {
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly operationId: string;
  readonly params?: Schema;
  readonly headers?: Schema;
  readonly body?: Schema;
  /** true: the request may have no body. */
  readonly bodyIsOptional?: boolean;
  readonly response: Readonly<Record<number, unknown>>;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Set if the schema depends on the models, whose inputs may be known only once they have loaded. */
    describe?: () => RouteSchema;
  }
}

/** The options of a route whose schema depends on the models. */
export const described = (
  schema: () => RouteSchema,
): { schema: RouteSchema; config: { describe: () => RouteSchema } } => ({
  schema: schema(),
  config: { describe: schema },
});

export const text = (description: string): Schema => Type.String({ description });
export const count = (description: string): Schema => Type.Integer({ minimum: 0, description });

const problem = Type.Object(
  {
    type: text("urn:sheaf:error: followed by the code."),
    title: text("The reason phrase of the status."),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: text("The cause, and how to fix it."),
    request_id: text("Also in the header x-request-id and in the log."),
    error: Type.Object({
      message: Type.String(),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()], { description: "Path of the invalid value." }),
      code: Type.String(),
    }),
  },
  { description: "A problem document (RFC 9457) and OpenAI's error in one." },
);

/** The replies to a failed request, by status. */
export const problems: Readonly<Record<number, string>> = {
  400: "The body is not JSON.",
  404: "There is no model of this name.",
  413: "The body is too large.",
  415: "The body is not application/json in UTF-8, uncompressed.",
  422: "A value is invalid; the message has its path, what is expected and what was received.",
  429: "The queue is full or the tenant has reached a bound. The headers retry-after and retry-after-ms say when to retry.",
  500: "The model failed.",
  502: "Every worker that ran the item ended. The message has the id of its dead letter.",
  503: "The server is starting or shutting down, or no worker is alive.",
  504: "The deadline passed, or the run took too long.",
};

export const json = (description: string, schema: Schema): object => ({
  description,
  content: { "application/json": { schema } },
});

const textError = Type.Object({ error: Type.String() });

const errorBodies: Readonly<Record<ErrorForm, { readonly type: string; readonly schema: Schema }>> = {
  problem: { type: "application/problem+json", schema: problem },
  message: {
    type: "application/problem+json",
    schema: Type.Intersect([problem, Type.Object({ message: text("Same as detail.") })]),
  },
  text: { type: "application/json", schema: textError },
  tei: {
    type: "application/json",
    schema: Type.Object({ error: Type.String(), error_type: text("Validation, Overloaded, Unhealthy or Backend.") }),
  },
};

const errorResponse = (description: string, form: ErrorForm): object => {
  const { type, schema } = errorBodies[form];
  return { description, content: { [type]: { schema } } };
};

export const errorResponses = (form: ErrorForm): Readonly<Record<number, unknown>> =>
  Object.fromEntries(
    Object.entries(problems).map(([status, description]) => [status, errorResponse(description, form)]),
  );

export const problemResponses: Readonly<Record<number, unknown>> = errorResponses("problem");

export const unauthorized = (form: ErrorForm): object => errorResponse("The key is missing or wrong.", form);

export const forbidden = (form: ErrorForm): object => errorResponse("The key is not that of an operator.", form);
