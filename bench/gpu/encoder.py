"""The encoder of ../../test/support/encoder-folder.mjs in PyTorch, of the shape in SHAPE: the same work, with other random weights.

On CUDA, unless the device is to be the CPU or there is none.
"""

import json
import os

import torch
from sheaf_worker import serve
from torch import nn

shape = json.loads(os.environ["SHAPE"])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        width = shape["width"]
        self.words = nn.Embedding(shape["vocabulary"], width)
        self.places = nn.Embedding(shape["maxTokens"], width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, shape["heads"], shape["hidden"], activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, shape["layers"])

    def forward(self, ids, is_padding):
        places = torch.arange(ids.shape[1], device=ids.device)
        states = self.layers(self.norm(self.words(ids) + self.places(places)), src_key_padding_mask=is_padding)
        kept = (~is_padding).unsqueeze(-1)
        return nn.functional.normalize((states * kept).sum(1) / kept.sum(1), dim=-1)


def load(data):
    torch.manual_seed(0)
    torch.set_num_threads(data["threads"])
    return Encoder().eval().to("cuda" if data["device"] != "cpu" and torch.cuda.is_available() else "cpu")


@torch.inference_mode()
def run(texts, model):
    device = next(model.parameters()).device
    # Two tokens more than words, as the tokenizer of the folder adds them.
    lengths = [min(len(text.split()) + 2, shape["maxTokens"]) for text in texts]
    ids = torch.ones(len(texts), max(lengths), dtype=torch.long)
    is_padding = torch.arange(max(lengths)) >= torch.tensor(lengths).unsqueeze(1)
    return model(ids.to(device), is_padding.to(device)).cpu().numpy()


serve(run, load=load, inputs="text", outputs="embedding", sample=["a", "The cat sits outside."])
