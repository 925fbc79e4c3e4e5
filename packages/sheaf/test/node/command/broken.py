"""A good worker with one habit that the protocol forbids: its first argument says which."""

import os
import sys
import time
import uuid

how = sys.argv[1]
if how == "imports slowly":
    time.sleep(1)  # as large libraries do; the protocol allows it
if how == "group":
    os.setpgid = lambda *_: None

import sheaf_worker  # noqa: E402

name = None
if how == "inherits":
    os.set_inheritable(3, True)
if how == "signals":
    sheaf_worker._leave_signals_to_the_parent = lambda: None
if how == "bound":
    sheaf_worker.MAX_PAYLOAD_BYTES = 2**40
if how == "changes":
    name = str(uuid.uuid4())
if how == "version":
    sheaf_worker.PROTOCOL = type("Any", (), {"__eq__": lambda *_: True, "__ne__": lambda *_: False})()
if how == "run-time":
    send = sheaf_worker._Channel.send
    sheaf_worker._Channel.send = lambda self, header, pieces=(): send(
        self, {key: value for key, value in header.items() if key != "runMs"}, pieces
    )


def run(texts):
    if how == "count" and len(texts) == 7:
        return texts[1:]
    if how == "fails" and len(texts) == 64:
        raise ValueError("too many")
    return texts


if how == "stops":
    sys.exit("no such model")
sheaf_worker.serve(run, inputs="text", outputs="text", sample=["a", "b"], name=name)
if how == "exit-code":
    sys.exit(5)
