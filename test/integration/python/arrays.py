"""What NumPy gives and takes: the first argument says what run does with its rows, the others declare."""

import sys

import numpy as np

from sheaf_worker import InvalidInput, serve

how, inputs, outputs = sys.argv[1:4]


def run(rows):
    assert isinstance(rows, np.ndarray) and rows.flags.writeable and rows.flags.c_contiguous, rows
    if how == "add":
        rows += 1
        return rows
    if how == "not":
        return ~rows
    if how == "reversed":
        return rows[:, ::-1].astype(np.float64)  # of another type, and not contiguous
    if how == "rows":
        return [row[:1] if row[0] == 7 else InvalidInput("eight") if row[0] == 8 else row for row in rows]
    if how == "json":
        return [{"sum": row.sum(), "row": row, "count": np.int64(row.size)} for row in rows]
    if how == "column":
        return rows.sum(axis=1)
    raise AssertionError(how)


serve(run, inputs=inputs, outputs=outputs, sample=np.zeros((3, 4), np.float32) if outputs == "embedding" else None)
