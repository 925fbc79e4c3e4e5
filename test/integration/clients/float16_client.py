"""
Float16 tensors with NVIDIA's own clients, over HTTP and gRPC: `float16_client.py URL GRPC_ADDRESS` with {"rows"} as its input.
Prints every result as numbers, which float64 holds exactly.
"""

import json
import sys

import numpy as np
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http

from tensors import message_of

url, grpc_address = sys.argv[1:]
halves = np.array(json.load(sys.stdin)["rows"], dtype=np.float16)


def infer(module, client, binary=None):
    tensor = module.InferInput("x", list(halves.shape), "FP16")
    tensor.set_data_from_numpy(halves)
    options = {} if binary is None else {"binary_data": binary}
    result = client.infer("halves", [tensor], outputs=[module.InferRequestedOutput("y", **options)])
    array = result.as_numpy("y")
    return {"dtype": str(array.dtype), "rows": array.astype(np.float64).tolist()}


http = triton_http.InferenceServerClient(url.removeprefix("http://"))
grpc = triton_grpc.InferenceServerClient(grpc_address)
not_finite = triton_http.InferInput("x", [1, 4], "FP16")
not_finite.set_data_from_numpy(np.array([[1, np.inf, 0, 0]], dtype=np.float16))
json.dump(
    {
        "metadata": http.get_model_metadata("halves"),
        "config": http.get_model_config("halves")["input"][0]["data_type"],
        "binary": infer(triton_http, http, True),
        "json": infer(triton_http, http, False),
        "grpc": infer(triton_grpc, grpc),
        "not finite": message_of(lambda: http.infer("halves", [not_finite])),
    },
    sys.stdout,
)
