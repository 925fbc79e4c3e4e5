"""NVIDIA's and KServe's own clients of /v2 over HTTP: `kserve_clients.py URL` with {"rows", "texts"} as its input."""

import asyncio
import json
import sys
from importlib.metadata import version

from kserve import InferenceRESTClient, InferInput as KServeInput, InferRequest, RESTConfig
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput

from tensors import bits, given_items, message_of

(url,) = sys.argv[1:]
rows, texts = given_items()


def triton():
    client = InferenceServerClient(url.removeprefix("http://"))

    def infer(model, array, datatype, name, output, binary):
        tensor = InferInput(name, list(array.shape), datatype)
        tensor.set_data_from_numpy(array, binary_data=binary)
        result = client.infer(model, [tensor], outputs=[InferRequestedOutput(output, binary_data=binary)])
        return bits(result.as_numpy(output))

    def outputs(model):
        return client.get_model_metadata(model)["outputs"][0]["name"]

    def mlp(binary):
        return infer("mlp", rows, "FP32", "input", outputs("mlp"), binary)

    def use_lite(binary):
        return infer("use-lite", texts, "BYTES", "text", outputs("use-lite"), binary)

    return {
        "ready": [
            client.is_server_live(),
            client.is_server_ready(),
            client.is_model_ready("mlp"),
            client.is_model_ready("mlp", "1"),
        ],
        "unready": [client.is_model_ready("nobody"), client.is_model_ready("mlp", "2")],
        "mlp": {"json": mlp(False), "binary": mlp(True)},
        "use-lite": {"json": use_lite(False), "binary": use_lite(True)},
        "server": client.get_server_metadata(),
        "config": [client.get_model_config("mlp"), client.get_model_config("mlp", "1")],
        "index": client.get_model_repository_index(),
        "statistics": [
            client.get_inference_statistics("mlp"),
            client.get_inference_statistics("mlp", "1"),
            client.get_inference_statistics(),
        ],
        "errors": {
            "unknown": message_of(lambda: client.get_model_metadata("nobody")),
            "config": message_of(lambda: client.get_model_config("nobody")),
            "statistics": message_of(lambda: client.get_inference_statistics("mlp", "2")),
            "shape": message_of(lambda: infer("mlp", rows[:, :3], "FP32", "input", "output", True)),
        },
    }


async def kserve():
    # Its own default for verify is a TLS context: no other option is needed over plain HTTP.
    client = InferenceRESTClient(RESTConfig(protocol="v2", retries=0, timeout=30))

    async def infer(binary):
        tensor = KServeInput("input", list(rows.shape), "FP32")
        tensor.set_data_from_numpy(rows, binary_data=binary)
        reply = await client.infer(url, InferRequest("mlp", [tensor]), model_name="mlp")
        return bits(reply.outputs[0].as_numpy())

    outcome = {
        "ready": [await client.is_server_live(url), await client.is_server_ready(url), await client.is_model_ready(url, "mlp")],
        "mlp": {"json": await infer(False), "binary": await infer(True)},
    }
    await client.close()
    return outcome


json.dump(
    {
        "versions": {name: version(name) for name in ["tritonclient", "kserve"]},
        "tritonclient": triton(),
        "kserve": asyncio.run(kserve()),
    },
    sys.stdout,
)
