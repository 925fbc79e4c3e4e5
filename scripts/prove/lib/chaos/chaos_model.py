"""The model of `npm run prove -- chaos` in Python: as chaos-worker.mjs."""

import os
import time

from sheaf_worker import serve


def answer(item):
    if item.get("do") == "fail":
        return RuntimeError(f"failed by {item['id']}")
    return {"id": item["id"], "number": 2 * item["number"]}


def run(items):
    asked = {item["do"]: item for item in items if "do" in item}
    time.sleep(0.002 + 0.0002 * len(items))
    if "crash" in asked:
        os._exit(7)
    while "hang" in asked:
        time.sleep(1)
    if "slow" in asked:
        time.sleep(0.3)
    if "throw" in asked:
        raise RuntimeError(f"thrown by {asked['throw']['id']}")
    return [answer(item) for item in items]


serve(run)
