"""What the Python programs share. Each is started as `NAME.py URL …` with {"model", "texts", "many"} as its input, and
prints what a user of the client gets from each URL: {"version", "replies": [{"query", "documents", "errors", …}, …]}."""

import json
import sys
from importlib.metadata import version

given = json.load(sys.stdin)
model, texts, many = given["model"], given["texts"], given["many"]


def message_of(call):
    """The error that a user of the client would see, as text."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def answer(package, reply_of):
    replies = [reply_of(base_url) for base_url in sys.argv[1:]]
    json.dump({"version": version(package), "replies": replies}, sys.stdout)
