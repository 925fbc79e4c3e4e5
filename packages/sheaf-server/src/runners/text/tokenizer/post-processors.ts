/** Special tokens, or one of the texts: 0 or 1. */
export type Piece =
  { readonly ids: readonly number[]; readonly type: number } | { readonly text: 0 | 1; readonly type: number };

/** How a text, and two of them, lie between special tokens. */
export interface Templates {
  readonly single: readonly Piece[];
  readonly pair: readonly Piece[];
}

type Config = Readonly<Record<string, unknown>>;

const bare: Templates = { single: [{ text: 0, type: 0 }], pair: [{ text: 0, type: 0 }, { text: 1, type: 1 }] }; // prettier-ignore

/** @throws {Error} a type that is not served. */
export function templatesOf(config: unknown): Templates {
  if (config === null || config === undefined) return bare;
  const { type, ...own } = config as Config;
  const make = Object.hasOwn(postProcessors, String(type)) ? postProcessors[String(type)] : undefined;
  if (make === undefined) throw new Error(`the post-processor ${JSON.stringify(type)} is not served`);
  return make(own);
}

/** By type. */
export const postProcessors: Readonly<Record<string, (config: Config) => Templates>> = {
  // Of places in the text, not of tokens.
  ByteLevel: () => bare,
  BertProcessing: ({ sep, cls }) => {
    const [start, end] = [[idOf(cls)], [idOf(sep)]];
    const single: Piece[] = [{ ids: start, type: 0 }, { text: 0, type: 0 }, { ids: end, type: 0 }]; // prettier-ignore
    return { single, pair: [...single, { text: 1, type: 1 }, { ids: end, type: 1 }] };
  },
  RobertaProcessing: ({ sep, cls }) => {
    const [start, end] = [[idOf(cls)], [idOf(sep)]];
    const single: Piece[] = [{ ids: start, type: 0 }, { text: 0, type: 0 }, { ids: end, type: 0 }]; // prettier-ignore
    return { single, pair: [...single, { ids: end, type: 0 }, { text: 1, type: 0 }, { ids: end, type: 0 }] };
  },
  TemplateProcessing: ({ single, pair, special_tokens: tokens }) => ({
    single: piecesOf(single, tokens),
    pair: piecesOf(pair, tokens),
  }),
  Sequence: ({ processors }) => {
    const all = (processors as readonly Config[]).filter(({ type }) => type !== "ByteLevel");
    if (all.length > 1) throw new Error("several post-processors that add tokens are not served");
    return templatesOf(all[0]);
  },
};

const idOf = (token: unknown): number => (token as readonly [string, number])[1];

interface TemplatePiece {
  readonly SpecialToken?: { readonly id: string; readonly type_id: number };
  readonly Sequence?: { readonly id: "A" | "B"; readonly type_id: number };
}

function piecesOf(template: unknown, tokens: unknown): Piece[] {
  const special = tokens as Readonly<Record<string, { readonly ids: readonly number[] } | undefined>>;
  return (template as readonly TemplatePiece[]).map(({ SpecialToken: token, Sequence: text }) => {
    if (text !== undefined) return { text: text.id === "A" ? 0 : 1, type: text.type_id };
    const ids = special[token!.id]?.ids;
    if (ids === undefined) throw new Error(`the template names ${token!.id}, which is not one of special_tokens`);
    return { ids, type: token!.type_id };
  });
}
