"""The floor of `npm run bench -- text`: the texts in view sorted by length and run, without a server. Questions and answers are
lines of JSON: {"embed": [text …]} → vectors; {"measure": [text …], "view": n, "seconds": s} → texts a second by run size."""

import json
import random
import sys
import time
from typing import Dict, List

from sheaf_worker import PassCost, plan_passes
from text_encoder import Encoder

RUN_SIZES = (1, 2, 4, 8, 16, 32)

encoder = Encoder()
# Learned from every run of the floor.
cost = PassCost()


def runs_of(rows: List[List[int]], view: int, size: int) -> List[List[List[int]]]:
    """The runs of all views; `size` 0 cuts them by cost."""
    runs = []
    for start in range(0, len(rows), view):
        seen = sorted(rows[start : start + view], key=len)
        if size == 0:
            runs += [[seen[i] for i in part] for part in plan_passes([len(row) for row in seen], cost)]
        else:
            runs += [seen[i : i + size] for i in range(0, len(seen), size)]
    return runs


def measure(texts: List[str], view: int, seconds: float) -> Dict[str, float]:
    began = time.perf_counter()
    rows = encoder.tokens(texts)
    tokenized = (time.perf_counter() - began) / len(texts)
    found = {}
    # Cut by cost last, when the others have taught it.
    for size in (*RUN_SIZES, 0):
        runs = runs_of(rows, view, size)
        # In another order: for as long as is measured, any share of them stands for all.
        random.Random(7).shuffle(runs)
        done, began = 0, time.perf_counter()
        for run in runs:
            started = time.perf_counter()
            encoder.run(run)
            ended = time.perf_counter()
            cost.learn(len(run), max(map(len, run)), 1000 * (ended - started))
            done += len(run)
            if ended - began > seconds:
                break
        found["by cost" if size == 0 else f"{size} a run"] = 1 / (tokenized + (time.perf_counter() - began) / done)
    return found


for line in sys.stdin:
    question = json.loads(line)
    if "embed" in question:
        answer = encoder.embed(question["embed"], 1).tolist()
    else:
        answer = measure(question["measure"], question["view"], question["seconds"])
    print(json.dumps(answer), flush=True)
