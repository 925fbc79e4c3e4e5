"""
KServe's own client over gRPC, with its defaults: `kserve_grpc_client.py ADDRESS` with {"rows", "texts"} as its input. In a
process of its own: NVIDIA's client brings the same messages, and one process cannot hold both.
"""

import asyncio
import json
import sys

from kserve import InferenceGRPCClient, InferInput, InferRequest

from tensors import bits, given_items

(address,) = sys.argv[1:]
rows, texts = given_items()


async def outcome():
    async with InferenceGRPCClient(address) as client:

        async def infer(model, array, datatype, name):
            tensor = InferInput(name, list(array.shape), datatype)
            tensor.set_data_from_numpy(array)
            reply = await client.infer(InferRequest(model, [tensor]))
            return bits(reply.outputs[0].as_numpy())

        return {
            "ready": [await client.is_server_ready(), await client.is_model_ready("mlp")],
            "mlp": await infer("mlp", rows, "FP32", "input"),
            "use-lite": await infer("use-lite", texts, "BYTES", "text"),
        }


json.dump(asyncio.run(outcome()), sys.stdout)
