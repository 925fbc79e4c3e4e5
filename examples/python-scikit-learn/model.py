"""Reads handwritten digits of 8 x 8 pixels with a forest of scikit-learn."""

from sheaf_worker import serve
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

digits = load_digits()
SHOWN = 1600  # of 1797; the rest is to try it with


def load(data):
    """Once in each process. A model of yours is read from a file: joblib.load("model.joblib")."""
    forest = RandomForestClassifier(n_estimators=100, random_state=0)
    return forest.fit(digits.data[:SHOWN], digits.target[:SHOWN])


def run(images, model):
    """`images` is an array of shape [n, 64], whatever n is: scikit-learn is called once for all of them."""
    shares = model.predict_proba(images)
    return [{"digit": int(row.argmax()), "share": float(row.max())} for row in shares]


serve(run, load=load, inputs="floats[64]", sample=digits.data[SHOWN : SHOWN + 3])
