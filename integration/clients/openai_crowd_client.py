"""Each text in a call of its own, all at once, with the client's default retries."""

import asyncio

from openai import AsyncOpenAI, DEFAULT_MAX_RETRIES

from client import answer, many, model


def reply_of(base_url):
    assert DEFAULT_MAX_RETRIES == 2

    async def all_of_them():
        async with AsyncOpenAI(base_url=base_url, api_key="none") as client:

            async def one(text):
                try:
                    return (await client.embeddings.create(model=model, input=text)).data[0].embedding
                except Exception as error:
                    return f"{type(error).__name__}: {error}"

            return await asyncio.gather(*(one(text) for text in many))

    return asyncio.run(all_of_them())


answer("openai", reply_of)
