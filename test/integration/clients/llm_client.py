import json
import sys

from openai import OpenAI, __version__

given = json.load(sys.stdin)


def reply_of(base_url):
    client = OpenAI(base_url=base_url, api_key="sk-test", max_retries=0)
    messages = [{"role": "user", "content": given["text"]}]
    stream = client.chat.completions.create(model="m", messages=messages, stream=True)
    with client.responses.stream(model="m", input=given["text"]) as events:
        responses = events.get_final_response().output_text
    return {
        "chat": client.chat.completions.create(model="m", messages=messages).choices[0].message.content,
        "chat stream": [chunk.choices[0].delta.content for chunk in stream],
        "completions": client.completions.create(model="m", prompt=given["text"]).choices[0].text,
        "responses": client.responses.create(model="m", input=given["text"]).output_text,
        "responses stream": responses,
    }


json.dump({"version": __version__, "replies": [reply_of(url) for url in sys.argv[1:]]}, sys.stdout)
