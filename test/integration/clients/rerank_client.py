"""LlamaIndex's client of TEI's /rerank."""

from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.postprocessor.tei_rerank import TextEmbeddingInference

from client import answer, texts


def reply_of(base_url):
    nodes = [NodeWithScore(node=TextNode(text=text), score=0) for text in texts]
    ranked = TextEmbeddingInference(base_url=base_url, top_n=len(texts)).postprocess_nodes(nodes, query_str=texts[1])
    return [{"index": texts.index(node.text), "score": node.score} for node in ranked]


answer("llama-index-postprocessor-tei-rerank", reply_of)
