import { invalid } from "../../problems/problem.ts";
import { fieldsOf, flagOf, integerOf, modelNameOf } from "./fields.ts";
import { checkTexts, type TextsToRank } from "./rank-texts.ts";
import { truncates, truncationKeys } from "./truncation.ts";

/** TEI's request. */
interface TextsOfTei extends TextsToRank {
  readonly returnText: boolean;
}

/** The request of Cohere, Jina and vLLM. */
export interface DocumentsToRank extends TextsToRank {
  /** Texts, or objects with a `text`. */
  readonly documents: readonly unknown[];
  readonly returnDocuments: boolean;
}

const documentKeys = ["query", "documents", "model", "top_n", "return_documents", "max_tokens_per_doc"];
/** A document is one chunk here, and Sheaf's own header sets the priority. */
export const ignoredDocumentKeys: readonly string[] = ["max_chunks_per_doc", "priority", "user"];

/** Told apart by the field that has the texts. */
export function readTextsOrDocuments(body: unknown): TextsOfTei | DocumentsToRank {
  const hasDocuments = typeof body === "object" && body !== null && "documents" in body && !("texts" in body);
  return hasDocuments ? readDocuments(body, true) : readTexts(body);
}

function readTexts(body: unknown): TextsOfTei {
  const keys = ["query", "texts", "model", "raw_scores", ...truncationKeys, "return_text", "top_n"];
  const fields = fieldsOf(body, "an object with query and texts", keys);
  const { query, texts } = fields;
  const name = modelNameOf(fields);
  const truncate = truncates(fields);
  const [isRaw, returnText] = [flagOf(fields, "raw_scores", false), flagOf(fields, "return_text", false)];
  const mostRanks = mostRanksOf(integerOf(fields, "top_n", 0));
  checkTexts(texts, "texts");
  return { name, query, texts, path: "texts", pathOf: (i) => `texts[${i}]`, mostRanks, isRaw, truncate, returnText };
}

/** `returnsByDefault`: whether the reply has the documents unless the request says otherwise. */
export function readDocuments(body: unknown, returnsByDefault: boolean): DocumentsToRank {
  const fields = fieldsOf(body, "an object with query and documents", documentKeys, ignoredDocumentKeys);
  const { query, documents } = fields;
  const name = modelNameOf(fields);
  const returnDocuments = flagOf(fields, "return_documents", returnsByDefault);
  const mostRanks = mostRanksOf(integerOf(fields, "top_n", 0));
  const tokens = integerOf(fields, "max_tokens_per_doc", 1);
  const tokenLimit = tokens === undefined ? undefined : { path: "max_tokens_per_doc", tokens };
  checkTexts(documents, "documents");
  const pathOf = (i: number): string => (isObject(documents[i]) ? `documents[${i}].text` : `documents[${i}]`);
  const texts = documents.map(textOfDocument);
  return { name, query, texts, documents, path: "documents", pathOf, mostRanks, returnDocuments, tokenLimit };
}

/** 0 stands for all, as with vLLM. */
const mostRanksOf = (topN: number | undefined): number | undefined => (topN === 0 ? undefined : topN);

const isObject = (document: unknown): document is { readonly text?: unknown } =>
  typeof document === "object" && document !== null && !Array.isArray(document);

function textOfDocument(document: unknown, index: number): unknown {
  if (typeof document === "string") return document;
  if (!isObject(document)) throw invalid(`documents[${index}]`, 'a text or an object with a "text"', document);
  return document.text;
}
