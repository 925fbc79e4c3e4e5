"""A worker that does what its items say: JSON objects with "do"."""

import ctypes
import multiprocessing
import os
import resource
import signal
import sys
import time

from sheaf_worker import Context, InvalidInput, log, serve


class Unprintable(Exception):
    code = 10**5000  # more digits than Python writes

    def __str__(self):
        raise ValueError("no text")

    @property
    def __cause__(self):
        raise ValueError("no cause")


def load(data):
    data = data or {}
    if "load_s" in data:
        time.sleep(data["load_s"])
    if "fail" in data:
        raise RuntimeError(data["fail"])
    if "memory_mb" in data:
        most = data["memory_mb"] * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    return data


def unload(model):
    print("unloaded")


def obey(item, model, context: Context):
    what = item["do"]
    if what == "double":
        return item["n"] * 2
    if what == "error":
        return ValueError(item["message"])
    if what == "invalid":
        return InvalidInput(item["message"])
    if what == "raise":
        raise KeyError(item["message"])
    if what == "unprintable":
        return Unprintable()
    if what == "raise-unprintable":
        raise Unprintable
    if what == "pool":
        with multiprocessing.get_context("fork").Pool(2) as pool:  # its end terminates the children
            return pool.map(abs, item["numbers"])
    if what == "terminated":
        child = os.fork()
        if child == 0:
            time.sleep(600)
        os.kill(child, signal.SIGTERM)
        return os.waitpid(child, 0)[1]
    if what == "large":
        return "x" * item["bytes"]
    if what == "nan":
        return float("nan")
    if what == "object":
        return object()
    if what == "loop":
        while True:
            pass
    if what == "exit":
        os._exit(7)
    if what == "sys-exit":
        sys.exit(3)
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "segfault":
        ctypes.string_at(0)
    if what == "hoard":
        return len([bytearray(1024 * 1024) for _ in range(100_000)])
    if what == "hoard-natively":
        return len(bytearray(10**12))
    if what == "print":
        print(item["text"])
        os.write(1, b"from a descriptor\n")
        log("a warning", level="warning")
        return "printed"
    if what == "fork":
        child = os.fork()
        if child == 0:
            return "from the child"  # comes back from run in the child too
        os.waitpid(child, 0)
        return "from the parent"
    if what == "orphan":
        child = os.fork()
        if child == 0:
            time.sleep(600)
        return child
    if what == "until-cancelled":
        while not context.cancelled:
            time.sleep(0.001)
        print("cancelled")
        return "cancelled"
    if what == "text":
        return len(item["text"])
    if what == "rubbish":
        os.write(3, b"Hello, world! This is not a frame.")
        time.sleep(600)
    if what == "half-a-frame":
        os.write(3, b"\x20\x00\x00\x00\x00\x00\x00\x00{")
        os._exit(0)
    if what == "pid":
        return os.getpid()
    if what == "environment":
        return os.environ.get(item["name"])
    raise AssertionError(what)


runs = 0


def run(items, model, context):
    global runs
    runs += 1
    results = [runs if item["do"] == "runs" else obey(item, model, context) for item in items]
    return results[1:] if any(item.get("short") for item in items) else results


serve(run, load=load, unload=unload)
