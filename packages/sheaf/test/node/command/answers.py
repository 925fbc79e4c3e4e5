"""Answers items early, as their texts say."""

import time

from sheaf_worker import Context, serve


def columns(texts, word):
    return {"word": [f"{word} {text}" for text in texts], "size": [[len(text)] for text in texts]}


def run(texts, model, context: Context):
    early = [i for i, text in enumerate(texts) if text.startswith("early")]
    others = [i for i in range(len(texts)) if i not in early]
    if early:
        context.answer(early, columns([texts[i] for i in early], "first"))
        context.answer(early[:1], columns(["-"], "second"))
    for i in others:
        if texts[i] == "bad":
            context.answer([i], [ValueError("a bad text")])
        if texts[i] == "long":
            context.answer([i], [{"word": "too long", "size": [1, 2]}])
        if texts[i] == "beyond":
            context.answer([len(texts)], columns(["-"], "none"))
        if texts[i] == "two":
            context.answer([i], columns(["-", "-"], "none"))
        if texts[i] == "crash" and context.attempt == 1:
            time.sleep(0.1)
            raise SystemExit(3)
        while texts[i] == "until all left" and not context.cancelled:
            time.sleep(0.001)
    if "one short" in texts:
        return columns(texts[1:], "last")
    # A result for each item, or nothing where all are answered.
    return columns(texts, "last") if any(texts[i] not in ("bad", "long") for i in others) else None


serve(
    run,
    inputs="text",
    outputs={"word": "text", "size": "float32[1]"},
    sample=["early a", "b"],
)
