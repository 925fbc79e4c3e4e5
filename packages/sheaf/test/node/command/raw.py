"""Speaks the protocol by hand, and breaks it in the way its first argument says."""

import json
import os
import struct
import sys
import time

FD = int(os.environ["SHEAF_WORKER_FD"])


def receive():
    header_bytes, payload_bytes = struct.unpack("<II", exactly(8))
    return json.loads(exactly(header_bytes)), exactly(payload_bytes)


def exactly(size):
    data = b""
    while len(data) < size:
        part = os.read(FD, size - len(data))
        if not part:
            os._exit(0)
        data += part
    return data


def send(header, payload=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    os.write(FD, struct.pack("<II", len(text), len(payload)) + text + payload)


def column(payload, kind="json", count=1, **more):
    """One column that fills its payload, unless `more` says otherwise."""
    return {"columns": [{"kind": kind, "count": count, "at": 0, "bytes": len(payload), **more}]}, payload


def tensor(shape):
    return column(b"1234", "tensor", dtype="float32", shape=shape)


replies = {
    "no-columns": ({}, b""),
    "outside": column(b"", bytes=100),
    "tensor-short": tensor([1, 2]),
    "tensor-other": tensor([1, 1]),
    "text-short": column(b"1234", "text"),
    "text-wild": column(struct.pack("<II", 0, 4_000_000_000) + b"text", "text"),
    "json-broken": column(b"[1,"),
    "json-count": column(b"[1,2]"),
    "error-outside": (
        {**column(b"[]", count=0)[0], "errors": [{"index": 7, "error": {"type": "E", "message": "m"}}]},
        b"[]",
    ),
}

how = sys.argv[1]
receive()
if how == "result-before-ready":
    send({"type": "result", "id": 0})
if how == "not-json":
    send(b"nonsense")
if how == "no-type":
    send({"id": 1})
if how == "unknown":
    send({"type": "hurray"})
outputs = "float32[2]" if how.startswith("tensor") else "text" if how.startswith("text") else "json"
if how == "bad-declaration":
    outputs = "float32[none]"
if how == "other-each-time" and os.path.exists(sys.argv[2]):
    outputs = "text"
if how == "other-each-time":
    open(sys.argv[2], "w").close()
send({"type": "ready", "inputs": "json", "outputs": outputs})
if how == "ready-twice":
    send({"type": "ready"})
while True:
    header, payload = receive()
    if header["type"] == "close":
        send({"type": "closed"})
        if how == "lingers":
            time.sleep(600)
        break
    id = header["id"]
    if how == "other-each-time":
        os._exit(1)
    elif how == "error-of-no-shape":
        send({"type": "failed", "id": id, "error": 7})
        continue
    elif how.startswith("answer"):
        answer = {"type": "answer", "id": id, "indices": [0], **column(b'["now"]')[0]}
        if how == "answer-other-id":
            answer["id"] += 5
        elif how == "answer-outside":
            answer["indices"] = [header["size"]]
        elif how == "answer-nothing":
            answer["indices"] = "all"
        elif how == "answer-too-many":
            answer["indices"] = [0, 1]
        for _ in range(2 if how == "answer-twice" else 1):
            send(answer, b'["now"]')
    reply, payload = replies.get(how, column(b'["ok"]'))
    send({"type": "result", "id": id + 5 if how == "other-id" else id, **reply}, payload)
