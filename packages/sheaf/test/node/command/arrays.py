"""Gives back what it got, and says of what kind it was. Without NumPy, as on a bare machine."""

import array
import sys

sys.modules["numpy"] = None  # as if it were not installed

from sheaf_worker import serve  # noqa: E402


def load(data):
    return data or {}


def run(columns, model):
    rows, texts = columns["row"], columns["text"]
    assert isinstance(rows, list) and all(isinstance(row, array.array) for row in rows), rows
    results = []
    for row, text, flags in zip(rows, texts, columns["flags"]):
        for i in range(len(row)):
            row[i] += 1  # writable
        results.append({"row": row, "shout": text.upper(), "flags": flags, "seen": {"kind": row.typecode, "n": len(rows)}})
    if "wrong" in texts:
        results[texts.index("wrong")]["row"] = [1.0]
    return results


serve(
    run,
    load=load,
    name="arrays",
    inputs={"row": "floats[2,2]", "text": "text", "flags": "bool[3]"},
    outputs={"row": "float32[2,2]", "shout": "text", "flags": "bool[3]", "seen": "json"},
    sample={"row": [[1, 2], [3, 4]], "text": "hi", "flags": [1, 0, 1]},
)
