"""The clients of other embedding and rerank services, unmodified, in one process: what a user of each gets from one server.
Prints {"version": {package: version}, "replies": [{client: {"vectors", "ranks", "errors", …}}]}."""

import json
import sys
from importlib.metadata import version

import cohere
import litellm
import ollama
from huggingface_hub import InferenceClient
from langchain_cohere import CohereEmbeddings, CohereRerank
from langchain_ollama import OllamaEmbeddings
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference
from llama_index.postprocessor.tei_rerank import TextEmbeddingInference

from client import given, message_of, model, texts

litellm.suppress_debug_info = True  # it would print to where the answer goes
query = texts[1]


def ranks_of(results):
    return [{"index": result.index, "score": result.relevance_score} for result in results]


def of_cohere(url):
    v1 = cohere.Client("none", base_url=url)
    v2 = cohere.ClientV2("none", base_url=url)
    kind = "search_document"
    ranked = v1.rerank(model=model, query=query, documents=texts, return_documents=True)
    by_type = v2.embed(texts=texts, model=model, input_type=kind, embedding_types=["float", "base64"])
    return {
        "vectors": v1.embed(texts=texts, model=model, input_type=kind).embeddings,
        "v2": by_type.embeddings.float_,
        "base64": by_type.embeddings.base64,
        "ranks": ranks_of(ranked.results),
        "documents": [result.document.text for result in ranked.results],
        "v2_ranks": ranks_of(v2.rerank(model=model, query=query, documents=texts, top_n=2).results),
        "errors": {
            "empty": message_of(lambda: v2.embed(texts=[""], model=model, input_type=kind, embedding_types=["float"])),
            "unknown": message_of(lambda: v1.rerank(model="none", query=query, documents=texts)),
            "types": message_of(lambda: v2.embed(texts=texts, model=model, input_type=kind, embedding_types=["int8"])),
        },
    }


def of_ollama(url):
    client = ollama.Client(url)
    shown = client.show(model)
    return {
        "vectors": client.embed(model=f"{model}:latest", input=texts).embeddings,
        "one": client.embeddings(model=model, prompt=texts[0]).embedding,
        "models": [one.model for one in client.list().models],
        "capabilities": shown.capabilities,
        "errors": {
            "empty": message_of(lambda: client.embed(model=model, input="")),
            "unknown": message_of(lambda: client.embed(model="none", input="x")),
            "context": message_of(lambda: client.embed(model=model, input="x", options={"num_ctx": 8})),
        },
    }


def of_langchain_cohere(url):
    embeddings = CohereEmbeddings(model=model, cohere_api_key="none", base_url=url, max_retries=1)
    rerank = CohereRerank(model=model, cohere_api_key="none", base_url=url, top_n=len(texts))
    ranked = rerank.rerank(texts, query)
    return {
        "vectors": embeddings.embed_documents(texts),
        "one": embeddings.embed_query(texts[0]),
        "ranks": [{"index": one["index"], "score": one["relevance_score"]} for one in ranked],
        "errors": {"empty": message_of(lambda: embeddings.embed_query(""))},
    }


def of_langchain_ollama(url):
    def embeddings(name=model):
        return OllamaEmbeddings(model=name, base_url=url, validate_model_on_init=True)

    return {
        "vectors": embeddings().embed_documents(texts),
        "one": embeddings().embed_query(texts[0]),
        "errors": {
            "empty": message_of(lambda: embeddings().embed_query("")),
            "validated": message_of(lambda: embeddings("none")),
        },
    }


def of_hub(url):
    embed = InferenceClient(f"{url}/embed")
    predict = InferenceClient(f"{url}/predict")
    labels = predict.text_classification("w1 w2", top_k=2)
    return {
        "vectors": [embed.feature_extraction(text, truncate=True)[0].tolist() for text in texts],
        "several": embed.feature_extraction(texts, normalize=True).tolist(),
        "labels": [{"label": one.label, "score": one.score} for one in labels],
        "errors": {
            "empty": message_of(lambda: embed.feature_extraction("")),
            "prompt": message_of(lambda: embed.feature_extraction("x", prompt_name="query")),
        },
    }


def of_llama_index(url):
    embedding = TextEmbeddingsInference(model_name=model, base_url=url)
    rerank = TextEmbeddingInference(base_url=url, top_n=len(texts))
    nodes = [NodeWithScore(node=TextNode(text=text), score=0) for text in texts]
    ranked = rerank.postprocess_nodes(nodes, query_str=query)
    return {
        "vectors": embedding.get_text_embedding_batch(texts),
        "one": embedding.get_query_embedding(texts[0]),
        "ranks": [{"index": texts.index(node.text), "score": node.score} for node in ranked],
    }


def of_litellm(url):
    def embed(name, **options):
        reply = litellm.embedding(model=name, input=texts, api_key="none", max_retries=0, **options)
        return [entry["embedding"] for entry in reply.data]

    def rerank(provider, name=model, **options):
        options = {"api_base": url, "query": query, "documents": texts, **options}
        reply = litellm.rerank(model=f"{provider}/{name}", api_key="none", max_retries=0, **options)
        return [{"index": one["index"], "score": one["relevance_score"]} for one in reply.results]

    base = f"{url}/v1"
    return {
        "embeddings": {
            "cohere": embed(f"cohere/{model}", api_base=f"{url}/v2/embed"),
            "ollama": embed(f"ollama/{model}", api_base=url),
            "jina_ai": embed(f"jina_ai/{model}", api_base=base),
            "infinity": embed(f"infinity/{model}", api_base=base),
            "hosted_vllm": embed(f"hosted_vllm/{model}", api_base=base),
        },
        "reranks": {
            "cohere": rerank("cohere"),
            "jina_ai": rerank("jina_ai"),
            "hosted_vllm": rerank("hosted_vllm"),
            "together_ai": rerank("together_ai"),
            # Its form of documents is a text; everybody else's on this route is an object.
            "infinity": rerank("infinity", return_documents=False),
            "huggingface": rerank("huggingface", top_n=len(texts)),
        },
        "errors": {
            "unknown": message_of(lambda: rerank("cohere", "none")),
            "empty": message_of(lambda: rerank("jina_ai", documents=[""])),
        },
    }


clients = {
    "cohere": of_cohere,
    "huggingface-hub": of_hub,
    "langchain-cohere": of_langchain_cohere,
    "langchain-ollama": of_langchain_ollama,
    "litellm": of_litellm,
    "llama-index-embeddings-text-embeddings-inference": of_llama_index,
    "ollama": of_ollama,
}
url = sys.argv[1]
replies = {name: reply_of(url) for name, reply_of in clients.items()}
json.dump({"version": {name: version(name) for name in clients}, "replies": [replies]}, sys.stdout)
