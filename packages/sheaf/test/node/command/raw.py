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
    reply, payload = {"type": "result", "id": header["id"]}, b""
    if how == "other-id":
        reply["id"] += 5
        reply["columns"], payload = [{"kind": "json", "count": 1, "at": 0, "bytes": 3}], b"[1]"
    elif how == "no-columns":
        pass
    elif how == "outside":
        reply["columns"] = [{"kind": "json", "at": 0, "bytes": 100, "count": 1}]
    elif how == "tensor-short":
        reply["columns"], payload = [{"kind": "tensor", "dtype": "float32", "shape": [1, 2], "at": 0, "bytes": 4}], b"1234"
    elif how == "tensor-other":
        reply["columns"], payload = [{"kind": "tensor", "dtype": "float32", "shape": [1, 1], "at": 0, "bytes": 4}], b"1234"
    elif how == "text-short":
        reply["columns"], payload = [{"kind": "text", "count": 1, "at": 0, "bytes": 4}], b"1234"
    elif how == "text-wild":
        payload = struct.pack("<II", 0, 4_000_000_000) + b"text"
        reply["columns"] = [{"kind": "text", "count": 1, "at": 0, "bytes": len(payload)}]
    elif how == "json-broken":
        reply["columns"], payload = [{"kind": "json", "count": 1, "at": 0, "bytes": 3}], b"[1,"
    elif how == "json-count":
        reply["columns"], payload = [{"kind": "json", "count": 1, "at": 0, "bytes": 5}], b"[1,2]"
    elif how == "error-outside":
        reply["columns"], payload = [{"kind": "json", "count": 0, "at": 0, "bytes": 2}], b"[]"
        reply["errors"] = [{"index": 7, "error": {"type": "E", "message": "m"}}]
    elif how == "error-of-no-shape":
        reply = {"type": "failed", "id": header["id"], "error": 7}
    elif how.startswith("answer"):
        answer = {"type": "answer", "id": header["id"], "indices": [0]}
        column = {"kind": "json", "count": 1, "at": 0, "bytes": 7}
        if how == "answer-other-id":
            answer["id"] += 5
        elif how == "answer-outside":
            answer["indices"] = [header["size"]]
        elif how == "answer-nothing":
            answer["indices"] = "all"
        elif how == "answer-too-many":
            answer["indices"] = [0, 1]
        send({**answer, "columns": [column]}, b'["now"]')
        if how == "answer-twice":
            send({**answer, "columns": [column]}, b'["now"]')
        reply["columns"], payload = [{"kind": "json", "count": 1, "at": 0, "bytes": 6}], b'["ok"]'
    elif how == "crash-once" or how == "other-each-time":
        os._exit(1)
    else:
        reply["columns"], payload = [{"kind": "json", "count": 1, "at": 0, "bytes": 6}], b'["ok"]'
    send(reply, payload)
