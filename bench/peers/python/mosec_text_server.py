"""mosec: one worker that sorts the texts of its batch by length and runs 32 at a time; at most 64 requests within 1 ms."""

from typing import List

import numpy as np
import orjson
from mosec import Server, Worker
from text_encoder import Encoder

TEXTS_A_RUN = 32


class Inference(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()

    def deserialize(self, data: bytes) -> List[str]:
        texts = orjson.loads(data)["input"]
        return [texts] if isinstance(texts, str) else texts

    def forward(self, data: List[List[str]]) -> List[np.ndarray]:
        vectors = self.encoder.embed([text for texts in data for text in texts], TEXTS_A_RUN)
        ends = np.cumsum([len(texts) for texts in data])[:-1]
        return np.split(vectors, ends)

    def serialize(self, data: np.ndarray) -> bytes:
        reply = {"data": [{"embedding": vector} for vector in data]}
        return orjson.dumps(reply, option=orjson.OPT_SERIALIZE_NUMPY)


if __name__ == "__main__":
    server = Server()
    server.append_worker(Inference, num=1, max_batch_size=64, max_wait_time=1)
    server.run()
