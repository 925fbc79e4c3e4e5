from haystack import Document
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack.utils import Secret

from client import answer, many, message_of, model, texts


def reply_of(base_url):
    options = {"api_base_url": base_url, "api_key": Secret.from_token("none"), "max_retries": 0}

    def query(text, model=model):
        return OpenAITextEmbedder(model=model, **options).run(text)["embedding"]

    def documents(texts, **more):
        embedder = OpenAIDocumentEmbedder(model=model, progress_bar=False, raise_on_failure=True, **options, **more)
        return [document.embedding for document in embedder.run([Document(content=text) for text in texts])["documents"]]

    return {
        "query": query(texts[0]),
        "documents": documents(texts),
        "many": documents(many, batch_size=2048),
        "errors": {
            "empty": message_of(lambda: query("")),
            "unknown": message_of(lambda: query("x", "ada-002")),
        },
    }


answer("haystack-ai", reply_of)
