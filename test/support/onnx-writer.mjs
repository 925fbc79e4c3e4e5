/**
 * Writes ONNX models: the small part of onnx.proto3 that a graph of standard operators needs.
 * Field numbers are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3.
 */
const elementTypes = {
  float: 1,
  uint8: 2,
  int8: 3,
  uint16: 4,
  int16: 5,
  int32: 6,
  int64: 7,
  string: 8,
  bool: 9,
  float16: 10,
  double: 11,
  uint32: 12,
  uint64: 13,
};

export class OnnxGraph {
  #nodes = [];
  #initializers = [];
  #integers = new Set();

  /** Adds a constant tensor; its bytes are read when the model is written. Returns its name. */
  constant(name, type, axes, data) {
    const raw = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.#initializers.push([
      ...axes.flatMap((axis) => integer(1, axis)),
      ...integer(2, elementTypes[type]),
      ...text(8, name),
      ...message(9, [raw]),
    ]);
    return name;
  }

  /** A constant float32 scalar, for arithmetic. */
  scalar(name, value) {
    return this.constant(name, "float", [], Float32Array.of(value));
  }

  /** A constant 1-d int64 tensor, as shapes and axes are given; equal ones are stored once. */
  integers(...values) {
    const name = `integers_${values.join("_").replaceAll("-", "m")}`;
    if (!this.#integers.has(name)) {
      this.#integers.add(name);
      this.constant(name, "int64", [values.length], BigInt64Array.from(values, BigInt));
    }
    return name;
  }

  /** Adds a node with one output and returns the output's name. */
  node(operator, inputs, attributes = {}) {
    const output = `${operator}_${this.#nodes.length}`;
    this.#addNode(operator, inputs, [output], attributes);
    return output;
  }

  /** Adds a node with several outputs and returns their names. */
  nodes(operator, inputs, outputCount, attributes = {}) {
    const outputs = Array.from({ length: outputCount }, (_, i) => `${operator}_${this.#nodes.length}_${i}`);
    this.#addNode(operator, inputs, outputs, attributes);
    return outputs;
  }

  /** Gives a value a name of its own, as outputs need. */
  rename(value, name) {
    this.#addNode("Identity", [value], [name], {});
    return name;
  }

  /** The model as the bytes of an `.onnx` file. */
  model(options) {
    const graph = [
      ...this.#nodes.flatMap((node) => message(1, node)),
      ...text(2, "graph"),
      ...this.#initializers.flatMap((tensor) => message(5, tensor)),
      ...options.inputs.flatMap((value) => message(11, valueInfo(value))),
      ...options.outputs.flatMap((value) => message(12, valueInfo(value))),
    ];
    const irVersion = 8;
    return Buffer.concat([
      ...integer(1, irVersion),
      ...text(2, "sheaf"),
      ...message(7, graph),
      ...message(8, integer(2, options.opset ?? 17)),
    ]);
  }

  #addNode(operator, inputs, outputs, attributes) {
    this.#nodes.push([
      ...inputs.flatMap((input) => text(1, input)),
      ...outputs.flatMap((output) => text(2, output)),
      ...text(3, outputs[0] ?? operator),
      ...text(4, operator),
      ...Object.entries(attributes).flatMap(([name, value]) => message(5, attribute(name, value))),
    ]);
  }
}

function valueInfo({ name, type, axes }) {
  const shape = axes.flatMap((axis) => message(1, typeof axis === "string" ? text(2, axis) : integer(1, axis)));
  const tensorType = [...integer(1, elementTypes[type]), ...message(2, shape)];
  return [...text(1, name), ...message(2, message(1, tensorType))];
}

function attribute(name, value) {
  const kinds = { float: 1, integer: 2, text: 3, integers: 7 };
  const typed = (body, kind) => [...text(1, name), ...body, ...integer(20, kind)];
  if (typeof value === "number") return typed(integer(3, value), kinds.integer);
  if (typeof value === "string") return typed(text(4, value), kinds.text);
  if ("float" in value) return typed(float(2, value.float), kinds.float);
  return typed(
    value.flatMap((entry) => integer(8, entry)),
    kinds.integers,
  );
}

const wireType = { varint: 0, lengthDelimited: 2, fixed32: 5 };

function integer(field, value) {
  return [varint((field << 3) | wireType.varint), varint(value)];
}

function float(field, value) {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return [varint((field << 3) | wireType.fixed32), bytes];
}

function text(field, value) {
  return message(field, [Buffer.from(value, "utf8")]);
}

// A message is a list of chunks that is joined once at the end, so that weights are copied once.
function message(field, body) {
  let length = 0;
  for (const chunk of body) length += chunk.length;
  return [varint((field << 3) | wireType.lengthDelimited), varint(length), ...body];
}

/** Seven bits a byte, lowest first; negative numbers as 64-bit two's complement. */
function varint(value) {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes = [];
  do {
    const low = Number(rest & 127n);
    rest >>= 7n;
    bytes.push(rest === 0n ? low : low | 128);
  } while (rest !== 0n);
  return Uint8Array.from(bytes);
}
