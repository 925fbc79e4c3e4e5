from concurrent.futures import ThreadPoolExecutor

from openai import OpenAI

from client import answer, many, message_of, model, texts


def reply_of(base_url):
    client = OpenAI(base_url=base_url, api_key="none", max_retries=0)

    def embed(input, model=model, client=client, **options):
        return [entry.embedding for entry in client.embeddings.create(model=model, input=input, **options).data]

    with ThreadPoolExecutor(32) as threads:
        together = list(threads.map(lambda text: embed(text)[0], texts * 10))
    return {
        "query": embed(texts[0])[0],
        "documents": embed(texts),
        "floats": embed(texts, encoding_format="float"),
        "together": together,
        "many": embed(many),
        "model": client.models.retrieve(model).id,
        "errors": {
            "empty": message_of(lambda: embed("")),
            "unknown": message_of(lambda: embed("x", "ada-002")),
            "tokens": message_of(lambda: embed([[1, 2, 3]])),
            "timeout": message_of(lambda: embed(many, client=client.with_options(timeout=0.001))),
        },
    }


answer("openai", reply_of)
