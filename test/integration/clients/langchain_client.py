from langchain_openai import OpenAIEmbeddings

from client import answer, many, message_of, model, texts


def reply_of(base_url):
    def embeddings(model=model, **options):
        # check_embedding_ctx_length=False: send texts, not the token ids of OpenAI's own models.
        options = {"check_embedding_ctx_length": False, **options}
        return OpenAIEmbeddings(model=model, base_url=base_url, api_key="none", max_retries=0, **options)

    return {
        "query": embeddings().embed_query(texts[0]),
        "documents": embeddings().embed_documents(texts),
        "many": embeddings(chunk_size=2048).embed_documents(many),
        "errors": {
            "empty": message_of(lambda: embeddings().embed_query("")),
            "unknown": message_of(lambda: embeddings("ada-002").embed_query("x")),
            "tokens": message_of(lambda: embeddings(check_embedding_ctx_length=True).embed_documents(texts)),
        },
    }


answer("langchain-openai", reply_of)
