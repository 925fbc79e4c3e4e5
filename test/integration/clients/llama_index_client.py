from llama_index.embeddings.openai_like import OpenAILikeEmbedding

from client import answer, many, message_of, model, texts


def reply_of(base_url):
    def embedding(name=model, **options):
        return OpenAILikeEmbedding(model_name=name, api_base=base_url, api_key="none", max_retries=0, **options)

    return {
        "query": embedding().get_query_embedding(texts[0]),
        "documents": embedding().get_text_embedding_batch(texts),
        "many": embedding(embed_batch_size=2048).get_text_embedding_batch(many),
        "errors": {
            "empty": message_of(lambda: embedding().get_query_embedding("")),
            "unknown": message_of(lambda: embedding("ada-002").get_query_embedding("x")),
        },
    }


answer("llama-index-embeddings-openai-like", reply_of)
