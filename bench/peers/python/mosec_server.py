"""mosec: one worker, batches of at most 64 within 1 ms. JSON by orjson, as its documentation advises; raw float32 too."""

import numpy as np
import orjson
from mlp import LENGTH, Mlp
from mosec import Server, Worker


class Inference(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.model = Mlp()

    def deserialize(self, data: bytes) -> tuple[np.ndarray, bool]:
        is_binary = len(data) == 4 * LENGTH
        values = np.frombuffer(data, np.float32) if is_binary else np.asarray(orjson.loads(data), np.float32)
        return values, is_binary

    def forward(self, data: list[tuple[np.ndarray, bool]]) -> list[tuple[np.ndarray, bool]]:
        outputs = self.model.run(np.stack([values for values, _ in data]))
        return [(output, is_binary) for output, (_, is_binary) in zip(outputs, data)]

    def serialize(self, data: tuple[np.ndarray, bool]) -> bytes:
        output, is_binary = data
        return output.tobytes() if is_binary else orjson.dumps(output, option=orjson.OPT_SERIALIZE_NUMPY)


if __name__ == "__main__":
    server = Server()
    server.append_worker(Inference, num=1, max_batch_size=64, max_wait_time=1)
    server.run()
