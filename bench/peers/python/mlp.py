"""The model that every Python server of this comparison serves: MLP_PATH names the .onnx file."""

import os

import numpy as np
import onnxruntime

LENGTH = 768


class Mlp:
    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            os.environ["MLP_PATH"], options, providers=["CPUExecutionProvider"]
        )

    def run(self, batch: np.ndarray) -> np.ndarray:
        """[n, 768] float32 in and out."""
        return self._session.run(["output"], {"input": batch})[0]
