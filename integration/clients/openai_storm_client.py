"""A storm of calls of openai's client, with its default retries: `openai_storm_client.py URL`."""

import asyncio
import sys

from openai import AsyncOpenAI

from storm import given, ride


async def main():
    async with AsyncOpenAI(base_url=sys.argv[1], api_key="none", timeout=given["patienceS"]) as client:
        await ride(lambda: client.embeddings.create(model=given["model"], input="a text"))


asyncio.run(main())
