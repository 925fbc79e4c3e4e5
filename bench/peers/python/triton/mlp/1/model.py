"""Triton's Python backend: one instance, dynamic batching without a delay, which its documentation says to begin with."""

import sys
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

# The backend isolates its interpreter from PYTHONPATH.
sys.path.append(str(Path(__file__).parents[3]))
from mlp import Mlp


class TritonPythonModel:
    def initialize(self, args: dict) -> None:
        self.model = Mlp()

    def execute(self, requests: list) -> list:
        inputs = [pb_utils.get_input_tensor_by_name(request, "input").as_numpy() for request in requests]
        outputs = np.split(self.model.run(np.concatenate(inputs)), np.cumsum([len(rows) for rows in inputs])[:-1])
        return [pb_utils.InferenceResponse([pb_utils.Tensor("output", rows)]) for rows in outputs]
