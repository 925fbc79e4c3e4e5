"""Operations on a schedule that does not wait for answers; prints how many began in each second, and how many of those were
answered. `operate` rejects where it is not."""

import asyncio
import json
import sys
import time

given = json.load(sys.stdin)


async def ride(operate):
    before, surge, factor, per_s = given["beforeS"], given["surgeS"], given["factor"], given["perS"]
    end = before + surge + given["afterS"]
    begun, answered = [0] * end, [0] * end
    await operate()  # the first call loads most of the client's modules
    started_at = last_at = time.monotonic()
    stood_still = due = 0.0
    tasks = []

    async def one(second):
        begun[second] += 1
        try:
            await operate()
            answered[second] += 1
        except Exception:
            pass  # not answered

    while due < end:
        now = time.monotonic()
        stood_still, last_at = max(stood_still, now - last_at), now
        while due < end and due <= now - started_at:
            tasks.append(asyncio.create_task(one(int(due))))
            due += 1 / (per_s * (factor if before <= due < before + surge else 1))
        await asyncio.sleep(0.005)
    await asyncio.gather(*tasks)
    json.dump({"begun": begun, "answered": answered, "stoodStillMs": 1000 * stood_still}, sys.stdout)
