"""Guesses the language of a text by its commonest words. Plain Python: nothing to install."""

import re

from sheaf_worker import InvalidInput, serve

WORDS = {
    "English": "the and of to in is that it was for on are with as at be this have from",
    "German": "der die und in den von zu das mit sich des auf ist im dem nicht ein eine",
    "French": "de la le et les des en un du une que est pour qui dans par il sur pas",
    "Spanish": "de la que el en y los se del las un por con no una su para es al lo",
}


def load(data):
    """Once in each process. A real model reads its weights here."""
    return {language: frozenset(words.split()) for language, words in WORDS.items()}


def guess(text, model):
    words = re.findall(r"\w+", text.lower())
    if not words:
        return InvalidInput("there is no word in it")  # fails this item only, as a 422
    counts = {language: sum(word in common for word in words) for language, common in model.items()}
    language = max(counts, key=counts.get)
    return {"language": language if counts[language] else None, "share": counts[language] / len(words)}


def run(texts, model):
    """A whole batch: one result for each text, in order."""
    return [guess(text, model) for text in texts]


serve(run, load=load, inputs="text", sample=["the cat is on the mat", "der Hund und die Katze"])
