"""A storm of calls of KServe's client over gRPC: `grpc_storm_client.py ADDRESS`. It retries no call that was refused or that
timed out, so that users do it: twice, with the back-off of openai's clients."""

import asyncio
import random
import sys

import numpy
from kserve import InferenceGRPCClient, InferInput, InferRequest

from storm import given, ride


async def main():
    async with InferenceGRPCClient(sys.argv[1], timeout=given["patienceS"]) as client:
        tensor = InferInput("text", [1], "BYTES")
        tensor.set_data_from_numpy(numpy.array(["a text"], dtype=object))

        async def operate():
            for attempt in range(3):
                try:
                    return await client.infer(InferRequest(given["model"], [tensor]))
                except Exception:
                    if attempt == 2:
                        raise
                await asyncio.sleep(0.5 * 2**attempt * (1 - 0.25 * random.random()))

        await ride(operate)


asyncio.run(main())
