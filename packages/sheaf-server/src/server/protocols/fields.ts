import type { Priority } from "sheaf";
import { Type, type OptionalSchema, type Schema } from "../../http/schema/json-schema.ts";
import { invalid } from "../../problems/problem.ts";
import { checkKeys, join, objectAt } from "../codec/inputs.ts";
import type { ModelDefinition } from "../contract/model-definition.ts";
import type { Models } from "../models/models.ts";

/** A kind of value in a body: its reader and its JSON schema. */
export interface Kind<Value> {
  /** @throws {Problem} 422, naming the path */
  read(value: unknown, path: string): Value;
  /** For /openapi.json: the names and the bounds of the models as they are now. */
  schema(models: Models): Schema;
}

export interface Field<Value> {
  /** `value` is undefined where the field is not given. */
  read(value: unknown, path: string): Value;
  schema(models: Models): Schema | OptionalSchema;
}

export const required = <Value>(kind: Kind<Value>, description?: string): Field<Value> => ({
  read: (value, path) => kind.read(value, path),
  schema: (models) => ({ ...kind.schema(models), ...(description !== undefined && { description }) }),
});

/** A field that may be null or left out; it then has the value `standard`. */
export function field<Value>(kind: Kind<Value>, description: string, standard: Value): Field<Value>;
export function field<Value>(kind: Kind<Value>, description: string): Field<Value | undefined>;
export function field<Value>(kind: Kind<Value>, description: string, standard?: Value): Field<Value | undefined> {
  return {
    read: (value, path) => (value === undefined || value === null ? standard : kind.read(value, path)),
    schema: (models) =>
      nullable({
        ...kind.schema(models),
        description,
        ...(standard !== undefined && { default: standard }),
      }),
  };
}

const nullable = (schema: Schema): OptionalSchema => Type.Optional(Type.Union([schema, Type.Null()]));

/** A field that may be left out, but not null. */
export const optional = <Value>(kind: Kind<Value>, description?: string): Field<Value | undefined> => ({
  read: (value, path) => (value === undefined ? undefined : kind.read(value, path)),
  schema: (models) => Type.Optional({ ...kind.schema(models), ...(description !== undefined && { description }) }),
});

/** Fields of any value that change nothing. */
export const ignored = <Key extends string>(...keys: readonly Key[]): Readonly<Record<Key, Field<unknown>>> =>
  Object.fromEntries(keys.map((key) => [key, ignoredField])) as Record<Key, Field<unknown>>;

const ignoredField: Field<unknown> = {
  read: (value) => value,
  schema: () => Type.Optional({ description: "Accepted and ignored." }),
};

/** The fields of an object by name. Of several wrong values an error names the first in this order. */
export type Fields = Readonly<Record<string, Field<unknown>>>;
/** What their readers give. */
export type ValuesOf<Rows extends Fields> = { readonly [Name in keyof Rows]: ReturnType<Rows[Name]["read"]> };

export function readFields<Rows extends Fields>(
  rows: Rows,
  given: Readonly<Record<string, unknown>>,
  path: string,
): ValuesOf<Rows> {
  const values: Record<string, unknown> = {};
  for (const name in rows) values[name] = rows[name]!.read(given[name], join(path, name));
  return values as ValuesOf<Rows>;
}

/** `others` is the schema of fields that are not among the rows. */
export const schemaOfFields = (rows: Fields, models: Models, others: Schema | false): Schema =>
  Type.Object(Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, row.schema(models)])), {
    additionalProperties: others,
  });

/**
 * An object with these fields. Others are refused by name, since they might change the results, except where they are null:
 * clients send null for what they leave out.
 */
export function object<Rows extends Fields>(expected: string, rows: Rows): Kind<ValuesOf<Rows>> {
  const keys = Object.keys(rows);
  return {
    read(value, path) {
      const given = objectAt(value, path, expected);
      checkKeys(given, keys, (key) => given[key] === null);
      return readFields(rows, given, path);
    },
    schema: (models) => schemaOfFields(rows, models, Type.Null()),
  };
}

/** The same, where others are refused also if they are null. */
export function closedObject<Rows extends Fields>(expected: string, rows: Rows): Kind<ValuesOf<Rows>> {
  const keys = Object.keys(rows);
  return {
    read(value, path) {
      const given = objectAt(value, path, expected);
      checkKeys(given, keys);
      return readFields(rows, given, path);
    },
    schema: (models) => schemaOfFields(rows, models, false),
  };
}

/** Values that `is` accepts. */
export const kindOf = <Value>(
  expected: string,
  is: (value: unknown) => boolean,
  schema: Schema | ((models: Models) => Schema),
): Kind<Value> => ({
  read(value, path) {
    if (!is(value)) throw invalid(path, expected, value);
    return value as Value;
  },
  schema: typeof schema === "function" ? schema : () => schema,
});

/** A value that is read later, with its model or by another reader. */
export const readLater = (schema: (models: Models) => Schema): Kind<unknown> => ({ read: (value) => value, schema });

export const trueOrFalse: Kind<boolean> = kindOf(
  "true or false",
  (value) => typeof value === "boolean",
  Type.Boolean(),
);

export const anyText: Kind<string> = kindOf("a text", (value) => typeof value === "string", Type.String());

export const integerFrom = (least: number, schema?: (models: Models) => Schema): Kind<number> =>
  kindOf(
    `an integer >= ${least}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= least,
    schema ?? Type.Integer({ minimum: least }),
  );

/** As in vLLM and Cohere, where larger is later: a request above 0 is bulk, others are unchanged. @default 0 */
export const priority: Field<Priority | undefined> = field<Priority | undefined>(
  {
    read: (value, path) => (anyInteger.read(value, path) > 0 ? "bulk" : undefined),
    schema: (models) => anyInteger.schema(models),
  },
  "Above 0: bulk. 0, the default, and less change nothing. X-Sheaf-Priority goes first.",
);
const anyInteger = integerFrom(Number.MIN_SAFE_INTEGER, () => Type.Integer());

export const oneOf = <Word extends string>(...words: readonly Word[]): Kind<Word> =>
  kindOf(inWords(words), (value) => words.includes(value as Word), Type.String({ enum: words }));

/** An array of at least one of these words, each once. */
export function someOf<Word extends string>(...words: readonly Word[]): Kind<readonly Word[]> {
  const one = oneOf(...words);
  return {
    read(value, path) {
      if (!Array.isArray(value) || value.length === 0) throw invalid(path, "an array that is not empty", value);
      const given = value.slice(0, words.length).map((word: unknown, index) => one.read(word, `${path}[${index}]`));
      if (value.length > words.length || new Set(given).size < given.length)
        throw invalid(path, "an array that names each type once", value);
      return given;
    },
    schema: (models) => Type.Array(one.schema(models), { minItems: 1, uniqueItems: true }),
  };
}

const inWords = (words: readonly string[]): string => words.map((word) => JSON.stringify(word)).join(" or ");

/** The name of a model; the models that `can` answer stand in the schema. */
export const modelThat = (can: (definition: ModelDefinition) => boolean): Kind<string> =>
  kindOf(
    "the name of a model",
    (value) => typeof value === "string",
    ({ all }) => nameSchema(all.filter(({ definition }) => can(definition))),
  );

/** The name of a model in a path. */
export const modelParameter = ({ deployments }: Models, description = "Name of a model."): Schema => ({
  ...nameSchema(deployments),
  description,
});

export const nameSchema = (models: readonly { readonly name: string }[]): Schema =>
  models.length === 0 ? Type.String() : Type.String({ enum: models.map(({ name }) => name) });
