"""Upload, create, poll, content, list, cancel and delete, as users of openai write it."""

import json
import time

from openai import OpenAI

from client import answer, message_of, model, texts


def reply_of(base_url):
    client = OpenAI(base_url=base_url, api_key="none", max_retries=0)
    lines = [
        {"custom_id": str(n), "method": "POST", "url": "/v1/embeddings", "body": {"model": model, "input": text}}
        for n, text in enumerate(texts)
    ]
    content = "\n".join(map(json.dumps, lines)).encode()
    file = client.files.create(
        file=("in.jsonl", content), purpose="batch", expires_after={"anchor": "created_at", "seconds": 7200}
    )
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h")
    while batch.status not in ("completed", "failed", "expired", "cancelled"):
        time.sleep(0.05)
        batch = client.batches.retrieve(batch.id)
    output = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
    reply = {
        "status": batch.status,
        "counts": batch.request_counts.to_dict(),
        "kept_s": file.expires_at - file.created_at,
        "vectors": {line["custom_id"]: line["response"]["body"]["data"][0]["embedding"] for line in output},
        "files": [one.purpose for one in client.files.list(limit=1)],
        "batches": [one.id == batch.id for one in client.batches.list(limit=1)],
        "cancelled": client.batches.cancel(batch.id).status,
        "deleted": [client.files.delete(id).deleted for id in (file.id, batch.output_file_id)],
    }
    return {**reply, "gone": message_of(lambda: client.files.retrieve(file.id))}


answer("openai", reply_of)
