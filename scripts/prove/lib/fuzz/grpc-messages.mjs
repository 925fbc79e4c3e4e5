// Messages of the Open Inference Protocol in protobuf's bytes, by hand: hostile ones too.

export const infer = "/inference.GRPCInferenceService/ModelInfer";

/** { model_name: "double", inputs: [FP32 [1, 3]], raw_input_contents: [n, 2n, -n] } */
export function goodMessage(number) {
  const input = [lengthDelimited(1, "input"), lengthDelimited(2, "FP32"), lengthDelimited(3, Buffer.from([1, 3]))];
  const bytes = Buffer.from(Float32Array.of(number, 2 * number, -number).buffer);
  return Buffer.concat([lengthDelimited(1, "double"), lengthDelimited(5, Buffer.concat(input)), lengthDelimited(7, bytes)]);
} // prettier-ignore

export function framed(message) {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

export function lengthDelimited(number, content) {
  const bytes = Buffer.from(content);
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

export function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}

/** { model_name: "double", inputs: [FP32 of this shape], raw_input_contents: [three numbers] } */
export function shapedMessage(shape) {
  const axes = lengthDelimited(3, Buffer.concat(shape.map((axis) => varint(BigInt.asUintN(64, axis)))));
  const input = Buffer.concat([lengthDelimited(1, "input"), lengthDelimited(2, "FP32"), axes]);
  return Buffer.concat([lengthDelimited(1, "double"), lengthDelimited(5, input), lengthDelimited(7, Buffer.alloc(12))]);
}

/** { model_name: "echo", inputs: [BYTES [1] of this text, in its contents or raw] } */
export function textMessage(text, isRaw) {
  const tensor = [lengthDelimited(1, "input"), lengthDelimited(2, "BYTES"), lengthDelimited(3, Buffer.from([1]))];
  if (!isRaw) tensor.push(lengthDelimited(5, lengthDelimited(8, text)));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(Buffer.byteLength(text));
  const raw = isRaw ? [lengthDelimited(7, Buffer.concat([length, Buffer.from(text)]))] : [];
  return Buffer.concat([lengthDelimited(1, "echo"), lengthDelimited(5, Buffer.concat(tensor)), ...raw]);
}
