/** KServe's binary tensor extension: body and headers of a request whose JSON head says how long the tensor after it is. */
export function binaryTensorRequest(values, rows = 1) {
  const tensor = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  const input = {
    name: "input",
    shape: [rows, values.length / rows],
    datatype: "FP32",
    parameters: { binary_data_size: tensor.length },
  };
  const head = Buffer.from(JSON.stringify({ inputs: [input], parameters: { binary_data_output: true } }));
  const headers = {
    "content-type": "application/octet-stream",
    "inference-header-content-length": String(head.length),
  };
  return { body: Buffer.concat([head, tensor]), headers };
}
