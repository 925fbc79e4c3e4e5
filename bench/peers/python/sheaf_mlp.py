"""Sheaf with a Python model: `sheaf serve sheaf_mlp.py`."""

from math import cos

import numpy as np
from mlp import LENGTH, Mlp
from sheaf_worker import Context, serve


def load(data: dict) -> Mlp:
    return Mlp()


def run(batch: np.ndarray, model: Mlp, context: Context) -> np.ndarray:
    return model.run(batch)


kind = f"float32[{LENGTH}]"
samples = [[cos(i + k) for i in range(LENGTH)] for k in (1, 2)]
serve(run, load=load, inputs=kind, outputs=kind, sample=samples)
