"""What the clients are given, and how they show what they got."""

import base64
import json
import sys

import numpy as np


def given_items():
    """Rows of floats and texts, from {"rows", "texts"} on standard input."""
    given = json.load(sys.stdin)
    texts = np.array([[text.encode()] for text in given["texts"]], dtype=np.object_)[:, 0]
    return np.array(given["rows"], dtype=np.float32), texts


def bits(array):
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode()


def message_of(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"
