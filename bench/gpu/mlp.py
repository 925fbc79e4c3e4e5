"""The built-in model mlp in PyTorch: 768 → 3072 → 768, with other random weights."""

import torch
from sheaf_worker import serve
from torch import nn


def load(data):
    torch.manual_seed(0)
    torch.set_num_threads(data["threads"])
    device = "cuda" if data["device"] != "cpu" and torch.cuda.is_available() else "cpu"
    return nn.Sequential(nn.Linear(768, 3072), nn.ReLU(), nn.Linear(3072, 768)).eval().to(device)


@torch.inference_mode()
def run(rows, model):
    return model(torch.from_numpy(rows).to(next(model.parameters()).device)).cpu().numpy()


serve(run, load=load, inputs="floats[768]", outputs="floats[768]", sample=torch.rand(2, 768).numpy())
