"""MLServer: a custom runtime with adaptive batching, at most 64 within 2 ms, in its default one inference worker."""

import numpy as np
from mlp import Mlp
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class MlpRuntime(MLModel):
    async def load(self) -> bool:
        self._mlp = Mlp()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        batch = NumpyCodec.decode_input(payload.inputs[0])
        output = NumpyCodec.encode_output("output", self._mlp.run(batch.astype(np.float32)))
        return InferenceResponse(model_name=self.name, outputs=[output])
