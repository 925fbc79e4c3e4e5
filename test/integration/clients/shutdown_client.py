"""Callers of `/infer` with a `requests.Session` each, until connections are refused. Takes {"url", "callers",
"pauseMs"}; prints the calls by their ids and how each ended: a status, "refused", or the error."""

import json
import sys
import threading
import time

import requests
from urllib3.exceptions import NewConnectionError

given = json.load(sys.stdin)
outcomes = {}


def call(session, id):
    try:
        headers = {"x-request-id": id}
        return str(session.post(given["url"] + "/infer", json="text", headers=headers, timeout=60).status_code)
    except requests.ConnectionError as error:
        reason = getattr(error.args[0], "reason", None)
        return "refused" if isinstance(reason, NewConnectionError) else repr(error)


def caller(number):
    session = requests.Session()
    outcome, i = "", 0
    while outcome != "refused":
        id = f"python-{number}-{i}"
        outcomes[id] = outcome = call(session, id)
        i += 1
        # Every other caller leaves its connection idle now and then.
        if number % 2 == 1:
            time.sleep(7 * i % given["pauseMs"] / 1000)


threads = [threading.Thread(target=caller, args=(number,)) for number in range(given["callers"])]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
json.dump(outcomes, sys.stdout)
