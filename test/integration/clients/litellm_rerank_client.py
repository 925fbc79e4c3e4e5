"""Litellm's client of TEI's /rerank, with its defaults."""

import litellm

from client import answer, texts

litellm.suppress_debug_info = True  # it would print to where the answer goes


def reply_of(base_url):
    reply = litellm.rerank(
        model="huggingface/any", query=texts[1], documents=texts, api_base=base_url, api_key="none", max_retries=0
    )
    return [{"index": result["index"], "score": result["relevance_score"]} for result in reply.results]


answer("litellm", reply_of)
