"""Sentence embeddings of a folder in the Hugging Face layout, one text at a time, in float64: the reference of
prove/published-folder.mjs. Reads a JSON list of texts, writes [{"ids": […], "vector": […]}]. Needs numpy and tokenizers."""
import json
import math
import struct
import sys

import numpy as np
from tokenizers import Tokenizer

folder = sys.argv[1]
read = lambda name: json.load(open(f"{folder}/{name}", encoding="utf-8"))
config = read("config.json")
heads, eps = config["num_attention_heads"], config["layer_norm_eps"]

with open(f"{folder}/model.safetensors", "rb") as file:
    header_bytes = struct.unpack("<Q", file.read(8))[0]
    header = json.loads(file.read(header_bytes))
    data = file.read()
weights = {
    name: np.frombuffer(data[slice(*entry["data_offsets"])], dtype="<f4").reshape(entry["shape"]).astype(np.float64)
    for name, entry in header.items()
    if entry.get("dtype") == "F32"
}

tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
tokenizer.no_padding()
tokenizer.enable_truncation(read("sentence_bert_config.json")["max_seq_length"])
erf = np.vectorize(math.erf)


def dense(x, name):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def norm(x, name):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def split(x):
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


def embed(ids):
    e = "embeddings"
    x = weights[f"{e}.word_embeddings.weight"][ids] + weights[f"{e}.token_type_embeddings.weight"][0]
    x = norm(x + weights[f"{e}.position_embeddings.weight"][: len(ids)], f"{e}.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}"
        q, k, v = (split(dense(x, f"{at}.attention.self.{part}")) for part in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        attended = (scores / scores.sum(-1, keepdims=True)) @ v
        merged = attended.transpose(1, 0, 2).reshape(len(ids), -1)
        x = norm(dense(merged, f"{at}.attention.output.dense") + x, f"{at}.attention.output.LayerNorm")
        inner = dense(x, f"{at}.intermediate.dense")
        gelu = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
        x = norm(dense(gelu, f"{at}.output.dense") + x, f"{at}.output.LayerNorm")
    vector = x.mean(0)
    return vector / np.linalg.norm(vector)


encoded = [tokenizer.encode(text).ids for text in json.load(sys.stdin)]
json.dump([{"ids": ids, "vector": embed(ids).tolist()} for ids in encoded], sys.stdout)
