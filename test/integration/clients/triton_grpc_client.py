"""
NVIDIA's own client over gRPC: `triton_grpc_client.py ADDRESS` with {"rows", "texts"} as its input. In a process of its own:
KServe's client brings the same messages, and one process cannot hold both.
"""

import json
import queue
import sys

import tritonclient.grpc as triton_grpc

from tensors import bits, given_items, message_of

(grpc_address,) = sys.argv[1:]
rows, texts = given_items()


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


json.dump(grpc(), sys.stdout)
