"""The encoder that every Python server of `npm run bench -- text` serves: ENCODER_FOLDER holds it."""

import os
from pathlib import Path
from typing import List, Sequence

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

THREADS = 2


class Encoder:
    def __init__(self) -> None:
        folder = Path(os.environ["ENCODER_FOLDER"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(512)

    def tokens(self, texts: Sequence[str]) -> List[List[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]

    def run(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """Token ids, shorter rows padded → mean vectors [n, 384]."""
        longest = max(map(len, rows))
        ids = np.zeros((len(rows), longest), np.int64)
        mask = np.zeros_like(ids)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = row
            mask[i, : len(row)] = 1
        states = self._session.run(["last_hidden_state"], {"input_ids": ids, "attention_mask": mask})[0]
        return (states * mask[:, :, None]).sum(1, dtype=np.float64) / mask.sum(1)[:, None]

    def embed(self, texts: Sequence[str], most: int) -> np.ndarray:
        """Texts sorted by length, `most` a run."""
        rows = self.tokens(texts)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        vectors: List[np.ndarray] = [np.empty(0)] * len(rows)
        for start in range(0, len(order), most):
            part = order[start : start + most]
            for i, vector in zip(part, self.run([rows[i] for i in part])):
                vectors[i] = vector
        return np.array(vectors, np.float32)
