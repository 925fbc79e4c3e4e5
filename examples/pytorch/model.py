"""A small image classifier of PyTorch, on the device that the server names: cpu, or cuda:0. Elsewhere on the CPU."""

import torch
from sheaf_worker import serve
from torch import nn


def load(data):
    """Once in each process, which is started fresh: CUDA works. A model of yours loads its weights here."""
    torch.manual_seed(0)
    torch.set_num_threads(data.get("threads", 1))
    model = nn.Sequential(
        nn.Conv2d(3, 16, kernel_size=3, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
        nn.Softmax(dim=1),
    )
    return model.eval().to(data.get("device", "cpu"))


@torch.inference_mode()
def run(images, model):
    """`images` is a writable array of shape [n, 3, 32, 32], whatever n is; the result is a tensor of shape [n, 10]."""
    device = next(model.parameters()).device
    return model(torch.from_numpy(images).to(device))


serve(run, load=load, inputs="floats[3,32,32]", outputs="floats[10]", sample=torch.rand(3, 3, 32, 32).numpy())
