"""Ray Serve: one replica, batches of at most 64 within 2 ms: `ray_server.py PORT`."""

import signal
import sys

import numpy as np
import orjson
import ray
from mlp import Mlp
from ray import serve
from starlette.requests import Request
from starlette.responses import Response


@serve.deployment(num_replicas=1, max_ongoing_requests=256, ray_actor_options={"num_cpus": 1})
class Deployment:
    def __init__(self) -> None:
        self.model = Mlp()

    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.002)
    async def infer(self, items: list[np.ndarray]) -> list[np.ndarray]:
        return list(self.model.run(np.stack(items)))

    async def __call__(self, request: Request) -> Response:
        values = np.asarray(orjson.loads(await request.body()), np.float32)
        output = orjson.dumps(await self.infer(values), option=orjson.OPT_SERIALIZE_NUMPY)
        return Response(output, media_type="application/json")


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1]), "access_log": False})
    serve.run(Deployment.bind(), route_prefix="/infer")
    signal.sigwait([signal.SIGTERM, signal.SIGINT])
    serve.shutdown()
    ray.shutdown()
