"""BentoML: one worker and adaptive batching with the latency budget of its documentation, 1 s."""

import bentoml
import numpy as np
from mlp import Mlp


@bentoml.service(workers=1)
class MlpService:
    def __init__(self) -> None:
        self.model = Mlp()

    @bentoml.api(batchable=True, batch_dim=0, max_batch_size=64, max_latency_ms=1000)
    def infer(self, batch: np.ndarray) -> np.ndarray:
        return self.model.run(batch.astype(np.float32))
