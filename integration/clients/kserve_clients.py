"""NVIDIA's and KServe's own clients of /v2: `kserve_clients.py URL GRPC_ADDRESS` with {"rows", "texts"} as its input."""

import asyncio
import base64
import json
import queue
import sys
from importlib.metadata import version

import numpy as np
from kserve import InferenceRESTClient, InferInput as KServeInput, InferRequest, RESTConfig
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
import tritonclient.grpc as triton_grpc

url, grpc_address = sys.argv[1:]
given = json.load(sys.stdin)
rows = np.array(given["rows"], dtype=np.float32)
texts = np.array([[text.encode()] for text in given["texts"]], dtype=np.object_)[:, 0]


def bits(array):
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode()


def message_of(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


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


def grpc():
    client = triton_grpc.InferenceServerClient(grpc_address)

    def tensor(array, datatype, name):
        given = triton_grpc.InferInput(name, list(array.shape), datatype)
        given.set_data_from_numpy(array)
        return given

    def infer(model, given, output, **options):
        wanted = [triton_grpc.InferRequestedOutput(output)]
        return bits(client.infer(model, [given], outputs=wanted, **options).as_numpy(output))

    mlp, use_lite = tensor(rows, "FP32", "input"), tensor(texts, "BYTES", "text")
    output = client.get_model_metadata("mlp").outputs[0].name
    replies = queue.Queue()
    client.start_stream(lambda result, error: replies.put((result, error)))
    for i in range(20):
        client.async_stream_infer("nobody" if i == 7 else "mlp", [mlp], request_id=str(i))
    streamed = [replies.get(timeout=30) for _ in range(20)]
    client.stop_stream()
    return {
        "ready": [
            client.is_server_live(),
            client.is_server_ready(),
            client.is_model_ready("mlp"),
            client.is_model_ready("mlp", "1"),
        ],
        "mlp": {
            "binary": infer("mlp", mlp, output),
            "compressed": infer("mlp", mlp, output, compression_algorithm="gzip"),
            "prioritised": infer("mlp", mlp, output, priority=1, timeout=10_000_000, client_timeout=30),
        },
        "use-lite": {"binary": infer("use-lite", use_lite, client.get_model_metadata("use-lite").outputs[0].name)},
        "stream": [str(error) if error else bits(result.as_numpy(output)) for result, error in streamed],
        "server": client.get_server_metadata(as_json=True)["name"],
        "config": client.get_model_config("mlp", as_json=True)["config"]["max_batch_size"],
        "index": [model["name"] for model in client.get_model_repository_index(as_json=True)["models"]],
        "statistics": len(client.get_inference_statistics(as_json=True)["model_stats"]),
        "errors": {
            "unknown": message_of(lambda: client.get_model_metadata("nobody")),
            "shape": message_of(lambda: infer("mlp", tensor(rows[:, :3], "FP32", "input"), output)),
            "shared memory": message_of(client.get_cuda_shared_memory_status),
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
        "grpc": grpc(),
        "kserve": asyncio.run(kserve()),
    },
    sys.stdout,
)
