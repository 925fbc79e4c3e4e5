/** A length, or the name of a free axis. */
export type OnnxAxis = number | string;

/** A node's attribute: an integer, integers, a text, or a float (`{ float }`, as numbers alone are integers). */
export type OnnxAttribute = number | readonly number[] | string | { readonly float: number };

export interface OnnxValue {
  readonly name: string;
  readonly type: string;
  readonly axes: readonly OnnxAxis[];
}

export class OnnxGraph {
  constant(name: string, type: string, axes: readonly number[], data: NodeJS.TypedArray): string;
  scalar(name: string, value: number): string;
  integers(...values: readonly number[]): string;
  node(operator: string, inputs: readonly string[], attributes?: Readonly<Record<string, OnnxAttribute>>): string;
  nodes(
    operator: string,
    inputs: readonly string[],
    outputCount: number,
    attributes?: Readonly<Record<string, OnnxAttribute>>,
  ): string[];
  rename(value: string, name: string): string;
  model(options: {
    readonly inputs: readonly OnnxValue[];
    readonly outputs: readonly OnnxValue[];
    readonly opset?: number;
  }): Uint8Array;
}
