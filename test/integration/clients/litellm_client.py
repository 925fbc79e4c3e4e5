import litellm

from client import answer, many, message_of, model, texts

litellm.suppress_debug_info = True  # it would print to where the answer goes


def reply_of(base_url):
    def embed(input, model=model):
        reply = litellm.embedding(model=f"openai/{model}", input=input, api_base=base_url, api_key="none", max_retries=0)
        return [entry["embedding"] for entry in reply.data]

    return {
        "query": embed([texts[0]])[0],
        "documents": embed(texts),
        "many": embed(many),
        "errors": {
            "empty": message_of(lambda: embed([""])),
            "unknown": message_of(lambda: embed(["x"], "ada-002")),
        },
    }


answer("litellm", reply_of)
