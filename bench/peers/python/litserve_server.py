"""LitServe: one worker, batches of at most 64 within 2 ms: `litserve_server.py PORT`."""

import sys

import litserve as ls
import numpy as np
from mlp import Mlp


class Api(ls.LitAPI):
    def setup(self, device: str) -> None:
        self.model = Mlp()

    def decode_request(self, request: list[float]) -> np.ndarray:
        return np.asarray(request, np.float32)

    def batch(self, inputs: list[np.ndarray]) -> np.ndarray:
        return np.stack(inputs)

    def predict(self, batch: np.ndarray) -> np.ndarray:
        return self.model.run(batch)

    def unbatch(self, output: np.ndarray) -> list[np.ndarray]:
        return list(output)

    def encode_response(self, output: np.ndarray) -> dict:
        return {"output": output.tolist()}


if __name__ == "__main__":
    server = ls.LitServer(Api(max_batch_size=64, batch_timeout=0.002), accelerator="cpu", workers_per_device=1)
    server.run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False, log_level="warning")
