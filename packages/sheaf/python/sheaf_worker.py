"""Serves a Python model as a worker of Sheaf, which brings its items in batches.

    from sheaf_worker import serve

    def run(texts):
        return [text.upper() for text in texts]

    serve(run, inputs="text", sample="hello")

Start it with `npx sheaf serve model.py`, or with `workerCommand({ command: "python3", args: ["model.py"] })` of
`sheaf/node`. Both put this file on PYTHONPATH: there is nothing to install. It needs CPython 3.9 or newer on Linux or
macOS, and uses NumPy where it is installed. Its protocol is internal; src/node/command/protocol.md describes it.
"""

from __future__ import annotations

import array
import faulthandler
import inspect
import io
import itertools
import json
import math
import os
import queue
import resource
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections import abc
from typing import Any, Callable, Dict, List, Mapping, NoReturn, Optional, Sequence, Tuple, Union

__all__ = ["Context", "InvalidInput", "PassCost", "log", "plan_passes", "run_in_passes", "serve"]

PROTOCOL = 1
MAX_HEADER_BYTES = 16 * 1024 * 1024
MAX_PAYLOAD_BYTES = 1024 * 1024 * 1024
# Of this side's messages: larger results would hold the parent up for seconds.
MAX_RESULT_BYTES = 256 * 1024 * 1024
# One runs, and one was sent ahead of its turn.
MAX_BATCHES = 2
MAX_TRACEBACK_CHARS = 8_000
MAX_MESSAGE_CHARS = 4_000
MAX_CODE_CHARS = 100
ALIGNMENT = 64
MEMORY_SAMPLE_S = 1.0
# How long a run may take before a second thread reads what arrives; and how long that thread looks on when nothing runs.
TICK_S = 0.005
MAX_IDLE_TICKS = 20
SEND_BUFFER_BYTES = 1024 * 1024

#: What an input or output is: "text", "json", "float32[768]" (also "floats[768]"), or columns by name.
Declaration = Union[str, Mapping[str, str]]

# dtype → (its letter in the array module, its bytes).
DTYPES = {
    "float32": ("f", 4),
    "float64": ("d", 8),
    "int8": ("b", 1),
    "uint8": ("B", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "uint64": ("Q", 8),
    "bool": ("B", 1),
}


class InvalidInput(ValueError):
    """Raise it, or return it in the place of an item, where the caller's input is wrong: over HTTP a 422."""

    code = "INVALID_INPUT"


class Context:
    """What `run` is told about its batch."""

    __slots__ = ("batch_id", "size", "attempt", "_cancelled", "_outputs", "_send", "_answered", "_is_over")

    def __init__(
        self,
        batch_id: int,
        size: int,
        attempt: int,
        cancelled: "set[int]",
        outputs: "_Specs",
        send: Callable[[List[int], Any], None],
    ) -> None:
        #: Counts the batches of this process.
        self.batch_id = batch_id
        #: Items in the batch.
        self.size = size
        #: 1, or higher when the batch runs again after a crash.
        self.attempt = attempt
        self._cancelled = cancelled
        self._outputs = outputs
        self._send = send
        self._answered: "set[int]" = set()
        self._is_over = False

    @property
    def cancelled(self) -> bool:
        """Whether every caller of the batch has left. It may change during the run: a long one asks now and then."""
        return self.batch_id in self._cancelled

    def answer(self, indices: Sequence[int], results: Any) -> None:
        """Gives the items at these places their results before the run has ended, such as those of one pass.

        results: one for each index, in order, as `run` returns them; an exception in a position fails that item only.

        `run` still returns a result for every item: those of the answered ones are ignored, and where all are answered it
        may return anything. Only the first answer of an item counts, and none after the run. Raises IndexError where there is no such item, and ValueError for another number of results.
        """
        values = _results_list(results, self._outputs)
        if len(indices) != len(values):
            raise ValueError(f"answer got {len(values)} results for {len(indices)} items")
        for index in indices:
            if not 0 <= index < self.size:
                raise IndexError(f"answer: an index must be 0 to {self.size - 1}, got {index!r}")
        first: Dict[int, int] = {}
        for place, index in enumerate(indices):
            if index not in self._answered:
                first.setdefault(int(index), place)
        if self._is_over or not first:
            return
        is_all = len(first) == len(indices)
        self._send(list(first), values if is_all else [values[place] for place in first.values()])
        self._answered.update(first)

    def _end(self) -> Optional[List[int]]:
        """The places of the items without an answer; None where no item has one."""
        self._is_over = True
        return [index for index in range(self.size) if index not in self._answered] if self._answered else None


def serve(
    run: Callable[..., Any],
    *,
    load: Optional[Callable[..., Any]] = None,
    unload: Optional[Callable[[Any], None]] = None,
    inputs: Declaration = "json",
    outputs: Declaration = "json",
    sample: Any = None,
    name: Optional[str] = None,
    cacheable: Optional[bool] = None,
    weight: Optional[str] = None,
) -> None:
    """Runs batches until Sheaf closes the worker; returns then.

    run(items, model, context): one result per item, in order. An exception in a position fails that item only; one
        that is raised fails the batch. It may take fewer parameters.
    load(data): loads the model, once in each process; `data` is the option of that name, {} without it. Its result is
        `model`.
    unload(model): releases the model when the worker is closed.
    inputs: what `run` gets, whatever the size of the batch. "text": a list of str. "json": a list of values.
        "float32[768]" or "uint8[224,224,3]": one writable array of shape [n, …]; without NumPy a list of
        `array.array`, one flat array per item. A dict of names, such as {"image": "uint8[224,224,3]", "title":
        "text"}: a dict of those.
    outputs: what `run` returns. "json" (default): a list of anything JSON can hold, arrays included. "float32[10]":
        an array of shape [n, 10], or a list of rows. "embedding": rows of float32, which also serve the routes for
        embeddings; "embedding[384]" where there is no sample. "text", and a dict of names, as for inputs.
    sample: an item that the model takes, or a list of items. Runs once before the worker is ready, so that the first
        caller does not wait for what the first run makes ready. With two different items Sheaf also tests that an
        item's result does not depend on its batch-mates.
    name: of the model, in `executor.declaration`. `sheaf serve` names the model after its file, or as its config says.

    cacheable: whether a server may keep a result and give it to equal items. False for a model that draws random
        numbers or asks other services. Without it the self-test decides.
    weight: "length" where a run takes longer the longer its items are. The characters of an item's texts and the elements
        of its arrays and lists are then its weight, by which a server chooses which items share a batch.

    Raises TypeError or ValueError where an argument is wrong.
    """
    if _is_child_process():
        return  # multiprocessing imports the main module again in each child
    worker = _Worker(run, load, unload, _specs(inputs, "inputs"), _specs(outputs, "outputs"), sample, name, cacheable, weight)
    if _channel is None:
        sys.exit(
            f"{os.path.basename(sys.argv[0])} is a worker of Sheaf. Start it with: npx sheaf serve {sys.argv[0]}"
        )
    worker.serve(_channel)


def log(message: str, level: str = "info") -> None:
    """Writes a line to Sheaf's log. Levels: "debug", "info", "warning", "error". What is printed goes there as "info"."""
    if level not in ("debug", "info", "warning", "error"):
        raise ValueError(f'level must be "debug", "info", "warning" or "error", got {level!r}')
    if _channel is None:
        print(message, file=sys.stderr)
    else:
        _channel.send({"type": "log", "level": level, "message": str(message)[:MAX_MESSAGE_CHARS]})


# --- passes by length -----------------------------------------------------------------------------------------------

# The same as in src/models/pass-cost.ts, which says why.
PADDED_LEVELS = 21
LENGTH_LEVELS = 8
PADDED_WIDTH = 0.6
LENGTH_WIDTH = 0.75
ELSEWHERE = 0.01
COMMON_SHARE = 0.1
MEMORY = 16.0
LARGEST_STEP = 0.3
PASSES_TO_TRUST = 2
FIXED_LENGTH = 16
ATTENTION_LENGTH = 2048
GUESS_MS_PER_POSITION = 0.1
MAX_PADDED_LENGTH = 16_384
MOST_ITEMS = 512


class PassCost:
    """Learns how long a pass of some items takes, each filled up to the length of the longest. Keep it with the model."""

    def __init__(self) -> None:
        self._levels = [[0.0] * PADDED_LEVELS for _ in range(LENGTH_LEVELS)]
        self._weights = [[0.0] * PADDED_LEVELS for _ in range(LENGTH_LEVELS)]
        self._passes = 0

    def of(self, size: int, length: float) -> float:
        """The expected milliseconds of a pass of `size` items of `length`."""
        x, y = _pass_place(size, length)
        column, row = min(int(x), PADDED_LEVELS - 2), min(int(y), LENGTH_LEVELS - 2)
        right, below = x - column, y - row
        over, under = self._levels[row], self._levels[row + 1]
        above = over[column] + right * (over[column + 1] - over[column])
        beneath = under[column] + right * (under[column + 1] - under[column])
        return _guess_ms(size, length) * math.exp(above + below * (beneath - above))

    def learn(self, size: int, length: float, ms: float) -> None:
        """A pass of `size` items of `length` took `ms`. Times that are not > 0 are ignored."""
        if not (size >= 1 and length > 0 and 0 < ms < math.inf):
            return
        seen = math.log(ms / _guess_ms(size, length))
        common = 0.0 if self._passes < PASSES_TO_TRUST else COMMON_SHARE * _bounded(math.log(ms / self.of(size, length)))
        self._passes += 1
        x, y = _pass_place(size, length)
        near_columns = [math.exp(-0.5 * ((column - x) / PADDED_WIDTH) ** 2) for column in range(PADDED_LEVELS)]
        for row, (levels, weights) in enumerate(zip(self._levels, self._weights)):
            near_row = math.exp(-0.5 * ((row - y) / LENGTH_WIDTH) ** 2)
            for column, near_column in enumerate(near_columns):
                near = ELSEWHERE + near_row * near_column
                weight = weights[column]
                level = levels[column] + common
                step = seen - level if weight < PASSES_TO_TRUST else _bounded(seen - level)
                levels[column] = level + near / (weight + near) * step
                weights[column] = min(MEMORY, weight + near)


def _bounded(step: float) -> float:
    return max(-LARGEST_STEP, min(LARGEST_STEP, step))


def _guess_ms(size: int, length: float) -> float:
    return GUESS_MS_PER_POSITION * (FIXED_LENGTH + size * length * (1 + length / ATTENTION_LENGTH))


def _pass_place(size: int, length: float) -> Tuple[float, float]:
    x = max(0.0, min(PADDED_LEVELS - 1, math.log2(size * length)))
    return x, max(0.0, min(LENGTH_LEVELS - 1, 0.5 * math.log2(length)))


def plan_passes(
    lengths: Sequence[float], cost: PassCost, max_padded_length: float = MAX_PADDED_LENGTH
) -> List[List[int]]:
    """Cuts a batch into passes of like length, so that their expected times together are least.

    lengths: of the items, each > 0.
    max_padded_length: the most positions of a pass, items times the longest length; a longer item has its own pass.

    Returns the indices of the items of each pass; passes of short items come first. Raises ValueError for a length that
    is not > 0.
    """
    for index, length in enumerate(lengths):
        if not 0 < length < math.inf:
            raise ValueError(f"lengths[{index}] must be a number > 0, got {length!r}")
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    known: Dict[Tuple[int, float], float] = {}
    least = [0.0]
    starts = [0]
    for end in range(1, len(order) + 1):
        longest = lengths[order[end - 1]]
        best, start = math.inf, end - 1
        for size in range(1, max(1, min(end, MOST_ITEMS, int(max_padded_length // longest))) + 1):
            shape = (size, longest)
            if shape not in known:
                known[shape] = cost.of(size, longest)
            total = least[end - size] + known[shape]
            if total <= best:
                best, start = total, end - size
        least.append(best)
        starts.append(start)
    passes = []
    end = len(order)
    while end > 0:
        passes.append(sorted(order[starts[end] : end]))
        end = starts[end]
    return passes[::-1]


def run_in_passes(
    items: Sequence[Any],
    lengths: Sequence[float],
    run: Callable[[List[Any]], Sequence[Any]],
    cost: PassCost,
    max_padded_length: float = MAX_PADDED_LENGTH,
    context: Optional[Context] = None,
) -> List[Any]:
    """Runs a batch of items of different lengths in passes of like length, short ones first, cut where that is expected to
    take the least time, and learns from the time of each.

    run(items): the results of some of the items, in order; a list, or an array whose first axis is that of the items.
    context: with that of the batch, callers get their results at the end of their pass, and no pass begins once all of
        them have left.

    Returns the results in the order of the items. Raises ValueError where a number of results or lengths is wrong.
    """
    if len(lengths) != len(items):
        raise ValueError(f"lengths must have one number for each of {len(items)} items, got {len(lengths)}")
    results: List[Any] = [None] * len(items)
    passes = plan_passes(lengths, cost, max_padded_length)
    for number, indices in enumerate(passes):
        if context is not None and context.cancelled:
            raise _Cancelled("Every caller of the batch has left.")
        started = time.perf_counter()
        returned = run([items[index] for index in indices])
        if len(returned) != len(indices):
            raise ValueError(f"a pass returned {len(returned)} results for {len(indices)} items")
        longest = max(lengths[index] for index in indices)
        cost.learn(len(indices), longest, 1000 * (time.perf_counter() - started))
        for index, result in zip(indices, returned):
            results[index] = result
        # Those of the last pass go with the end of the batch.
        if context is not None and number < len(passes) - 1:
            context.answer(indices, returned)
    return results


class _Cancelled(Exception):
    code = "CANCELLED"


# --- what goes in and out -------------------------------------------------------------------------------------------


class _Spec:
    """One column: "text", "json", or the dtype and shape of an item."""

    def __init__(self, kind: str, dtype: str = "", shape: Tuple[int, ...] = (), embedding: bool = False) -> None:
        self.kind = kind
        self.dtype = dtype
        self.shape = shape
        self.embedding = embedding
        self.length = 1
        for axis in shape:
            self.length *= axis

    def __str__(self) -> str:
        if self.kind != "tensor":
            return self.kind
        name = "embedding" if self.embedding else self.dtype
        return name if self.shape == () else f"{name}[{','.join(map(str, self.shape))}]"

    @property
    def needs_length(self) -> bool:
        return self.embedding and self.shape == ()


# Without names there is one column, whose name is None.
_Specs = Dict[Optional[str], _Spec]


def _specs(declared: Declaration, what: str) -> _Specs:
    if isinstance(declared, str):
        return {None: _spec(declared, what)}
    if not isinstance(declared, abc.Mapping) or not declared:
        raise TypeError(f'{what} must be a text such as "text" or "float32[768]", or a dict of them, got {declared!r}')
    specs: _Specs = {}
    for name, text in declared.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"{what} must be a dict of text, got {name!r}: {text!r}")
        specs[name] = _spec(text, f"{what}[{name!r}]")
        if specs[name].embedding:
            raise ValueError(f'{what}[{name!r}]: "embedding" has no name; use "float32[…]"')
    return specs


def _spec(text: str, what: str) -> _Spec:
    if text in ("text", "json"):
        return _Spec(text)
    head, bracket, rest = text.partition("[")
    dtype = {"floats": "float32", "embedding": "float32"}.get(head, head)
    axes = rest[:-1].split(",") if bracket and rest.endswith("]") else []
    shape = tuple(int(axis) for axis in axes if axis.strip().isdecimal())
    is_embedding = head == "embedding" and what == "outputs"
    is_shape = len(shape) == len(axes) and all(axis >= 1 for axis in shape)
    if dtype in DTYPES and is_shape and (shape != () or (is_embedding and not bracket)):
        if head != "embedding" or (is_embedding and len(shape) <= 1):
            return _Spec("tensor", dtype, shape, is_embedding)
    raise ValueError(
        f'{what} must be "text", "json", or a type and shape such as "float32[768]" (types: {", ".join(DTYPES)}), '
        f"got {text!r}"
    )


def _declaration(specs: _Specs) -> Union[str, Dict[str, str]]:
    if None in specs:
        return str(specs[None])
    return {str(name): str(spec) for name, spec in specs.items()}


_numpy: Any = None


def _import_numpy(specs: Sequence[_Spec]) -> None:
    """NumPy is loaded only where there are arrays: importing it takes a tenth of a second."""
    global _numpy
    if not any(spec.kind == "tensor" for spec in specs):
        return
    try:
        import numpy
    except ImportError:
        return
    _numpy = numpy


def _decode(specs: _Specs, columns: Sequence[Mapping[str, Any]], payload: bytearray) -> Any:
    """The columns of a `run` message as `run` gets them."""
    values = {column.get("name"): _decode_column(specs[column.get("name")], column, payload) for column in columns}
    return values[None] if None in specs else {name: values[name] for name in specs}


def _decode_column(spec: _Spec, column: Mapping[str, Any], payload: bytearray) -> Any:
    at, end = column["at"], column["at"] + column["bytes"]
    if spec.kind == "json":
        return json.loads(memoryview(payload)[at:end].tobytes())
    if spec.kind == "text":
        return _decode_texts(memoryview(payload)[at:end], column["count"])
    count = column["shape"][0]
    if _numpy is not None:
        flat = _numpy.frombuffer(payload, spec.dtype, count * spec.length, at)
        return flat.reshape((count, *spec.shape))
    letter, item_bytes = DTYPES[spec.dtype]
    rows = []
    for start in range(at, end, spec.length * item_bytes):
        row = array.array(letter)
        row.frombytes(memoryview(payload)[start : start + spec.length * item_bytes])
        rows.append(row)
    return rows


def _decode_texts(column: memoryview, count: int) -> List[str]:
    offsets = column[: 4 * (count + 1)].cast("I").tolist()
    blob = column[4 * (count + 1) :].tobytes()
    if blob.isascii():
        text = blob.decode("ascii")
        return [text[start:end] for start, end in zip(offsets, offsets[1:])]
    return [blob[start:end].decode() for start, end in zip(offsets, offsets[1:])]


class _Results:
    """What a run returned, as columns of the results and errors by their places in the batch."""

    def __init__(self, specs: _Specs, returned: Any, places: Optional[Sequence[int]] = None) -> None:
        self.columns: List[Dict[str, Any]] = []
        self.pieces: List[Any] = []
        self.errors: List[Dict[str, Any]] = []
        self._bytes = 0
        self._specs = specs
        values = _results_list(returned, specs)
        if places is None or len(places) != len(values):  # another number than items: the other side says so
            places = range(len(values))
        if isinstance(values, list) and any(isinstance(value, BaseException) for value in values):
            self._fail([(place, value) for place, value in zip(places, values) if isinstance(value, BaseException)])
            good = [i for i, value in enumerate(values) if not isinstance(value, BaseException)]
            values, places = [values[i] for i in good], [places[i] for i in good]
        self._encode(values, places)

    def message(self, kind: str, batch_id: int) -> Tuple[Dict[str, Any], Sequence[Any]]:
        """Its header and payload."""
        header: Dict[str, Any] = {"type": kind, "id": batch_id, "columns": self.columns}
        if self.errors:
            header["errors"] = self.errors
        return header, self.pieces

    def _fail(self, failed: Sequence[Tuple[int, BaseException]]) -> None:
        self.errors += [{"index": index, "error": _describe(error)} for index, error in failed]

    def _encode(self, values: Any, places: Sequence[int]) -> None:
        """Items whose own result does not fit fail alone, and the others are encoded without them."""
        try:
            encoded = [(name, spec, _encode_column(spec, _column(values, name))) for name, spec in self._specs.items()]
        except Exception:
            failed = {i: error for i, error in ((i, self._trial(value)) for i, value in enumerate(values)) if error}
            if not failed:
                raise
            self._fail([(places[i], error) for i, error in failed.items()])
            good = [i for i in range(len(values)) if i not in failed]
            return self._encode([values[i] for i in good], [places[i] for i in good])
        for name, spec, (count, pieces) in encoded:
            self._add(name, spec, count, pieces)

    def _trial(self, value: Any) -> Optional[Exception]:
        try:
            for name, spec in self._specs.items():
                _encode_column(spec, _column([value], name))
        except Exception as error:
            return error
        return None

    def _add(self, name: Optional[str], spec: _Spec, count: int, pieces: Sequence[Any]) -> None:
        if self._bytes % ALIGNMENT != 0:
            padding = bytes(ALIGNMENT - self._bytes % ALIGNMENT)
            self.pieces.append(padding)
            self._bytes += len(padding)
        size = sum(map(len, pieces))
        column: Dict[str, Any] = {"kind": spec.kind, "at": self._bytes, "bytes": size}
        if name is not None:
            column["name"] = name
        if spec.kind == "tensor":
            column.update(dtype=spec.dtype, shape=[count, *spec.shape])
        else:
            column["count"] = count
        self.columns.append(column)
        self.pieces += pieces
        self._bytes += size


def _results_list(returned: Any, specs: _Specs) -> Any:
    """A list of results, or an array of them. Columns by name become records, where an item may fail alone."""
    if None not in specs and isinstance(returned, abc.Mapping):
        missing = [name for name in specs if name not in returned]
        if missing:
            raise TypeError(f"run returned no {missing[0]!r}, which outputs declares")
        columns = [_on_cpu(returned[name]) for name in specs]
        lengths = {len(column) for column in columns}
        if len(lengths) != 1:
            raise TypeError(f"run returned columns of different lengths: {sorted(lengths)}")
        return [dict(zip(specs, row)) for row in zip(*columns)]
    if isinstance(returned, list):
        return returned
    is_array = hasattr(returned, "__array__")
    # A string of NumPy is an array as well.
    is_one = isinstance(returned, (str, bytes))
    if is_one or not is_array and (isinstance(returned, abc.Mapping) or inspect.isawaitable(returned)):
        raise TypeError(f"run must return one result per item, in order, got {type(returned).__name__}")
    returned = _on_cpu(returned)
    if is_array and None in specs and specs[None].kind == "tensor":
        return returned
    # Also a generator, a tuple, an array or a column of a data frame.
    return returned.tolist() if hasattr(returned, "tolist") else list(returned)


def _on_cpu(value: Any) -> Any:
    """A tensor of PyTorch may be on a GPU and remember its gradient."""
    return value.detach().cpu() if hasattr(value, "detach") else value


def _column(values: Any, name: Optional[str]) -> Any:
    return values if name is None else [value[name] for value in values]


def _encode_column(spec: _Spec, values: Any) -> Tuple[int, Sequence[Any]]:
    """How many values, and their bytes in pieces."""
    if spec.kind == "tensor":
        return len(values), [_encode_tensor(spec, values)]
    if spec.kind == "text":
        return len(values), _encode_texts(values)
    return len(values), [_json_encoder.encode(values).encode("utf-8", "replace")]


def _json_value(value: Any) -> Any:
    if hasattr(value, "tolist"):  # an array or a number of NumPy, PyTorch or pandas
        return _on_cpu(value).tolist()
    raise TypeError(f"a result holds a {type(value).__name__}, which JSON cannot hold")


# Made once: json.dumps would make one for every batch.
_json_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_json_value, separators=(",", ":"))


def _encode_texts(values: Sequence[Any]) -> List[bytes]:
    """n + 1 offsets, then the UTF-8 of all texts."""
    try:
        blob = "".join(values).encode("utf-8", "replace")
    except TypeError:
        wrong = next(value for value in values if not isinstance(value, str))
        raise TypeError(f'a result must be a str (outputs="text"), got {type(wrong).__name__}') from None
    # Lengths in characters are lengths in bytes where all is ASCII.
    parts = values if blob.isascii() else [value.encode("utf-8", "replace") for value in values]
    offsets = array.array("I", itertools.accumulate(map(len, parts), initial=0))
    return [offsets.tobytes(), blob if parts is values else b"".join(parts)]


def _encode_tensor(spec: _Spec, values: Any) -> Any:
    """Bytes of an array of shape [n, …]; the memory of the model's own array where it fits as it is."""
    shape = (len(values), *spec.shape)
    if _numpy is None:
        flat: List[Any] = []
        for value in values:
            before = len(flat)
            _flatten(value, flat)
            if len(flat) - before != spec.length:
                raise ValueError(f"a result has {len(flat) - before} numbers, {spec} has {spec.length}")
        return array.array(DTYPES[spec.dtype][0], flat).tobytes()
    if isinstance(values, list):
        values = [_on_cpu(value) for value in values]
    result = _numpy.ascontiguousarray(values, dtype=spec.dtype)
    if result.shape != shape and len(values) > 0:
        raise ValueError(f"results have the shape {list(result.shape)}; for {spec} it must be {list(shape)}")
    return memoryview(result).cast("B") if result.size > 0 else b""


def _flatten(value: Any, into: List[Any]) -> None:
    if hasattr(value, "__iter__"):
        for part in value:
            _flatten(part, into)
    else:
        into.append(value)


def _describe(error: BaseException) -> Dict[str, Any]:
    """An error as it travels: its type, message and a traceback of bounded length."""
    described: Dict[str, Any] = {
        "type": type(error).__name__,
        "message": _message(error)[:MAX_MESSAGE_CHARS],
        "traceback": _traceback(error)[-MAX_TRACEBACK_CHARS:],
    }
    code = _code(error)
    if code is not None:
        described["code"] = code
    return described


# An exception is code of the model: where it raises when it is looked at, it still fails only its own item.


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as unprintable:
        return f"its message cannot be read: __str__ raised {type(unprintable).__name__}"


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-30))
    except Exception:
        return ""


def _code(error: BaseException) -> Union[str, int, None]:
    try:
        code = getattr(error, "code", None)
    except Exception:
        return None
    if isinstance(code, str):
        return code[:MAX_CODE_CHARS]
    return code if isinstance(code, int) and abs(code) < 2**53 else None


# --- the worker -----------------------------------------------------------------------------------------------------


class _Worker:
    def __init__(
        self,
        run: Callable[..., Any],
        load: Optional[Callable[..., Any]],
        unload: Optional[Callable[[Any], None]],
        inputs: _Specs,
        outputs: _Specs,
        sample: Any,
        name: Optional[str],
        cacheable: Optional[bool],
        weight: Optional[str],
    ) -> None:
        for what, function in (("run", run), ("load", load), ("unload", unload)):
            if function is not None and not callable(function):
                raise TypeError(f"{what} must be a function, got {function!r}")
            if inspect.iscoroutinefunction(function):
                raise TypeError(f"{what} must be a plain function, not an async one")
        self._function = _with_fewer(run, 3)
        self._load = _with_fewer(load, 1) if load is not None else None
        self._unload = unload
        self._inputs = inputs
        self._outputs = outputs
        self._sample = sample
        if cacheable is not None and not isinstance(cacheable, bool):
            raise TypeError(f"cacheable must be True or False, got {cacheable!r}")
        if weight is not None and weight != "length":
            raise ValueError(f'weight must be "length", got {weight!r}')
        self._weight = weight
        self._name = name
        self._cacheable = cacheable
        self._model: Any = None
        self._sampled_at_s = 0.0

    def serve(self, channel: "_Channel") -> None:
        _leave_signals_to_the_parent()
        channel.start()
        try:
            ready = self._start(channel)
        except Exception as error:
            channel.send({"type": "failed", "error": _describe(error)})
            sys.exit(1)
        channel.send(ready)
        while True:
            header, payload = channel.receive()
            if header["type"] == "close":
                return self._close(channel)
            self._run_batch(channel, header, payload)

    def _start(self, channel: "_Channel") -> Dict[str, Any]:
        """Loads and warms up. Returns the `ready` message."""
        hello, _ = channel.receive()
        if self._load is not None:
            data = hello.get("data")
            self._model = self._load({} if data is None else data)
        channel.send({"type": "warming"})
        _import_numpy([*self._inputs.values(), *self._outputs.values()])
        sample = self._warm_up()
        unknown = [spec for spec in self._outputs.values() if spec.needs_length]
        if unknown:
            raise ValueError('outputs="embedding" needs a sample, or its length: "embedding[384]"')
        ready = {
            "type": "ready",
            "inputs": _declaration(self._inputs),
            "outputs": _declaration(self._outputs),
            "sample": sample,
        }
        said = {"name": self._name, "cacheable": self._cacheable, "weight": self._weight}
        return {**ready, **{field: value for field, value in said.items() if value is not None}}

    def _warm_up(self) -> List[Any]:
        """Runs the sample, which shows that the model takes what it declares. Returns its items as JSON holds them."""
        if self._sample is None:
            return []
        items = _sample_items(self._inputs, self._sample)
        try:
            values = {name: _sample_column(spec, _column(items, name)) for name, spec in self._inputs.items()}
            early: Dict[int, Any] = {}

            def keep(indices: List[int], values: Any) -> None:
                early.update(zip(indices, values))

            context = Context(0, len(items), 1, set(), self._outputs, keep)
            returned = self._run(values[None] if None in values else values, context)
            open_ = context._end()
            if open_ is not None:
                early.update(zip(open_, self._of_open(returned, open_, len(items))))
                returned = [early[index] for index in sorted(early)]
            self._learn_length(returned)
            results = _Results(self._outputs, returned)
        except Exception as error:
            raise ValueError(f"the sample failed: {type(error).__name__}: {_message(error)}") from error
        if results.errors:
            raise ValueError(f"the sample failed: {results.errors[0]['error']['message']}")
        count = sum(1 for _ in _results_list(returned, self._outputs))
        if count != len(items):
            raise ValueError(f"run returned {count} results for the {len(items)} items of the sample")
        return json.loads(json.dumps(items, default=_json_value))

    def _of_open(self, returned: Any, open_: Sequence[int], size: int) -> Any:
        """The results of the items that were not answered early, of those of all items."""
        if not open_:
            return []
        values = _results_list(returned, self._outputs)
        if len(values) != size:
            raise ValueError(f"run returned {len(values)} results for {size} items; an answered item keeps its place")
        return [values[index] for index in open_]

    def _run(self, items: Any, context: Context) -> Any:
        returned = self._function(items, self._model, context)
        return list(returned) if hasattr(returned, "__next__") else returned

    def _learn_length(self, returned: Any) -> None:
        spec = self._outputs.get(None)
        if spec is not None and spec.needs_length:
            self._outputs = {None: _Spec("tensor", spec.dtype, (len(_results_list(returned, self._outputs)[0]),), True)}

    def _run_batch(self, channel: "_Channel", header: Dict[str, Any], payload: bytearray) -> None:
        batch_id, size = header["id"], header["size"]
        started_s = time.perf_counter()
        reply: Dict[str, Any]
        pieces: Sequence[Any] = ()
        try:
            if batch_id in channel.cancelled:
                raise _Cancelled("Every caller of the batch has left.")
            items = _decode(self._inputs, header["columns"], payload)

            def send(indices: List[int], values: Any) -> None:
                answer, answer_pieces = _Results(self._outputs, values, indices).message("answer", batch_id)
                channel.send({**answer, "indices": indices}, answer_pieces)

            context = Context(batch_id, size, header["attempt"], channel.cancelled, self._outputs, send)
            try:
                returned = self._run(items, context)
            finally:
                open_ = context._end()
            if open_ is not None:
                returned = self._of_open(returned, open_, size)
            reply, pieces = _Results(self._outputs, returned, open_).message("result", batch_id)
        except Exception as error:
            reply = {"type": "failed", "id": batch_id, "error": _describe(error)}
        ended_s = time.perf_counter()
        reply["runMs"] = (ended_s - started_s) * 1000
        if ended_s - self._sampled_at_s >= MEMORY_SAMPLE_S:
            self._sampled_at_s = ended_s
            reply["memoryBytes"] = _memory_bytes()
        channel.ended(batch_id)
        channel.send(reply, pieces)

    def _close(self, channel: "_Channel") -> None:
        try:
            if self._unload is not None:
                self._unload(self._model)
        except Exception:
            traceback.print_exc()
        sys.stdout.flush()
        channel.send({"type": "closed"})


def _with_fewer(function: Callable[..., Any], most: int) -> Callable[..., Any]:
    """The function, called with as many of the arguments as it takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return function
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(1 for parameter in parameters if parameter.kind in positional)
    return function if count >= most else lambda *arguments: function(*arguments[:count])


def _sample_items(specs: _Specs, sample: Any) -> List[Any]:
    """One item, or a list of them: an array is a list of items where it has one axis more than an item."""
    spec = specs.get(None)
    if spec is not None and spec.kind == "tensor":
        rows = sample.tolist() if hasattr(sample, "tolist") else list(sample)
        return rows if _depth(rows) > len(spec.shape) else [rows]
    return sample if isinstance(sample, list) else [sample]


def _depth(value: Any) -> int:
    if hasattr(value, "tolist"):
        value = value.tolist()
    return 1 + _depth(value[0]) if isinstance(value, (list, tuple)) and value else 0


def _sample_column(spec: _Spec, values: List[Any]) -> Any:
    """The sample as a batch of it would arrive."""
    if spec.kind == "text":
        return _decode_texts(memoryview(b"".join(_encode_texts(values))), len(values))
    if spec.kind == "json":
        return json.loads(json.dumps(values, allow_nan=False, default=_json_value))
    data = bytearray(_encode_tensor(spec, values))
    column = {"at": 0, "bytes": len(data), "shape": [len(values)]}
    return _decode_column(spec, column, data)


def _memory_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()
    except OSError:  # macOS, which tells only the most there has been
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _leave_signals_to_the_parent() -> None:
    """A supervisor may signal every process; the parent drains and then closes this one. Not SIG_IGN, which programs that
    it starts would inherit; and children that it forks get the handlers of before, so that `terminate()` ends them."""
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    # Windows has not all of them.
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]

    def ignore(*_: Any) -> None:
        return None

    try:
        before = {number: signal.signal(number, ignore) for number in numbers}
    except ValueError:  # not on the main thread
        return
    mask = threading.local()

    # A signal to a child waits until the child has its former handlers back.
    def hold() -> None:
        mask.before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    def release() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask.before)

    def restore_and_release() -> None:
        for number, handler in before.items():
            if signal.getsignal(number) is ignore:
                signal.signal(number, handler)
        release()

    os.register_at_fork(before=hold, after_in_parent=release, after_in_child=restore_and_release)


def _is_child_process() -> bool:
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


# --- frames ---------------------------------------------------------------------------------------------------------


class _Channel:
    """Frames to and from Sheaf, on a file descriptor of their own: what user code prints cannot get in between.

    The main thread reads them itself between runs: one thread to wake for a batch, not two. During a run that takes
    longer than a tick a second thread reads, so that `cancel` and the end of the pipe arrive.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._file = io.FileIO(descriptor, "r", closefd=False)
        self._pid = os.getpid()
        self._received: "queue.SimpleQueue[Tuple[Dict[str, Any], bytearray]]" = queue.SimpleQueue()
        self._writing = threading.Lock()
        self._batches: "set[int]" = set()
        self._state = "hello"
        # Who reads. The second thread takes over only while user code runs, and gives back only while none does.
        self._turn = threading.Lock()
        self._is_running = False
        self._runs = 0
        self._is_watching = False
        self._may_run = threading.Event()
        #: Ids of batches whose callers have all left.
        self.cancelled: "set[int]" = set()
        # A child that runs another program must not hold it open; one that goes on in this one must not write to it.
        os.set_inheritable(descriptor, False)
        os.register_at_fork(after_in_child=self._close_in_child)
        _widen(descriptor)

    def start(self) -> None:
        threading.Thread(target=self._watch, name="sheaf-reader", daemon=True).start()

    def receive(self) -> Tuple[Dict[str, Any], bytearray]:
        """The next message to work on: `hello`, `run` or `close`. User code runs from now until the next call."""
        with self._turn:
            self._is_running = False
            reads_itself = not self._is_watching and self._received.empty()
        message = self._read_frame() if reads_itself else self._received.get()
        while message is None:
            message = self._read_frame()
        self._runs += 1
        self._is_running = True
        if not self._may_run.is_set():
            self._may_run.set()
        return message

    def _watch(self) -> None:
        idle_ticks = 0
        while True:
            self._may_run.wait()
            runs = self._runs
            time.sleep(TICK_S)
            with self._turn:
                self._is_watching = self._is_running and self._runs == runs
                idle_ticks = 0 if self._runs != runs or self._is_running else idle_ticks + 1
                if idle_ticks > MAX_IDLE_TICKS:
                    self._may_run.clear()
                    if self._is_running:
                        self._may_run.set()
            while self._is_watching:
                message = self._read_frame()
                if message is not None:
                    with self._turn:
                        self._received.put(message)
                        self._is_watching = self._is_running

    def ended(self, batch_id: int) -> None:
        self._batches.discard(batch_id)
        self.cancelled.discard(batch_id)

    def send(self, header: Mapping[str, Any], pieces: Sequence[Any] = ()) -> None:
        """Writes one frame. The pieces are the payload."""
        encoded = json.dumps(header, separators=(",", ":")).encode()
        payload_bytes = sum(map(len, pieces))
        if len(encoded) > MAX_HEADER_BYTES or payload_bytes > MAX_RESULT_BYTES:
            return self._send_too_large(header, len(encoded), payload_bytes)
        frame = [struct.pack("<II", len(encoded), payload_bytes) + encoded, *pieces]
        with self._writing:
            if os.getpid() != self._pid:
                os._exit(0)  # a fork of the worker came back from `run`
            self._write(frame)

    def _send_too_large(self, header: Mapping[str, Any], header_bytes: int, payload_bytes: int) -> None:
        message = (
            f"the results take {payload_bytes} bytes and {header_bytes} in the header; "
            f"{MAX_RESULT_BYTES} and {MAX_HEADER_BYTES} are the most. Lower maxBatchSize."
        )
        if header["type"] == "answer":
            raise ValueError(message)
        self.send({"type": "failed", "id": header.get("id"), "error": {"type": "ValueError", "message": message}})

    def _write(self, frame: List[Any]) -> None:
        try:
            left = [memoryview(piece).cast("B") if not isinstance(piece, bytes) else piece for piece in frame]
            while left:
                written = os.writev(self._descriptor, left[:512])
                while left and written >= len(left[0]):
                    written -= len(left.pop(0))
                if written > 0:
                    left[0] = memoryview(left[0])[written:]
        except OSError:  # the other end has gone
            os._exit(0)

    def _read_frame(self) -> Optional[Tuple[Dict[str, Any], bytearray]]:
        """The next frame, if it is one to work on."""
        header_bytes, payload_bytes = struct.unpack("<II", self._exactly(8, may_end=True))
        if header_bytes > MAX_HEADER_BYTES or payload_bytes > MAX_PAYLOAD_BYTES:
            _die(f"a frame of {header_bytes} + {payload_bytes} bytes is over the bound")
        try:
            header = json.loads(self._exactly(header_bytes))
            return self._accept(header, self._exactly(payload_bytes))
        except (ValueError, KeyError, TypeError) as error:
            _die(f"a message that cannot be read: {error!r}")

    def _accept(self, header: Dict[str, Any], payload: bytearray) -> Optional[Tuple[Dict[str, Any], bytearray]]:
        kind = header["type"]
        if kind == "cancel":
            if header["id"] in self._batches:
                self.cancelled.add(header["id"])
            return None
        if self._state == "hello" and kind == "hello":
            if header["protocol"] != PROTOCOL:
                _die(f"it speaks version {PROTOCOL} of the protocol, not {header['protocol']}")
            self._state = "open"
        elif self._state == "open" and kind == "run":
            self._batches.add(header["id"])
            if len(self._batches) > MAX_BATCHES:
                _die(f"more than {MAX_BATCHES} batches were sent at once")
        elif self._state == "open" and kind == "close":
            self._state = "closed"
        else:
            _die(f"{kind!r} was sent out of order")
        return header, payload

    def _exactly(self, size: int, may_end: bool = False) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while len(view) > 0:
            try:
                count = self._file.readinto(view)
            except OSError:
                count = 0
            if not count:
                if not may_end or len(view) < size:
                    _die("the pipe ended in the middle of a message")
                # Nobody is left to work for, whatever runs.
                os._exit(0)
            view = view[count:]
        return data

    def _close_in_child(self) -> None:
        try:
            os.close(self._descriptor)
        except OSError:
            pass


def _widen(descriptor: int) -> None:
    """Room for a large result in one write: the worker need not be woken again for the rest of it."""
    try:
        with socket.socket(fileno=os.dup(descriptor)) as duplicate:
            duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    except OSError:
        pass  # not a socket


def _die(why: str) -> NoReturn:
    """Ends the process whatever its other threads do. What it says is in the log, and in the error of the callers."""
    os.write(2, f"sheaf_worker: {why}\n".encode())
    os._exit(1)


def _open_channel() -> Optional[_Channel]:
    """Taken when this module is imported, so that programs which user code starts before `serve` do not inherit it."""
    descriptor = os.environ.pop("SHEAF_WORKER_FD", None)
    if descriptor is None:
        return None
    channel = _Channel(int(descriptor))
    # A kill takes whatever user code has started, and a terminal's Ctrl-C does not come here.
    os.setpgid(0, 0)
    # One stream for all that is printed, in order, also by native code; line by line, so that nothing is lost in a crash.
    os.dup2(2, 1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    faulthandler.enable()
    return channel


_channel = _open_channel()
