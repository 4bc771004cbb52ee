"""How the numbers were made, and on what: the page's notes on method, and its environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from edhnn.experiments.records import seconds_of
from edhnn.experiments.report.numbers import in_hours
from edhnn.typing import JsonObject

METHOD = (
    "Splits are frozen: 50 % of the nodes for training, 25 % for validation, 25 % for test, drawn anew for each "
    "split and stored with a hash, so that every model meets the same ones.",
    "A model is trained on the training nodes; the first epoch of the best validation accuracy is chosen; the "
    "test nodes are read once, for that epoch. Learned diffusion steps use 80, 10 and 10 % of the pairs and the "
    "same rule.",
    "Sizes of ED-HNN are those of the paper's Table 6; every cell names where its sizes come from, and what the "
    "experiment changed, with the reason.",
    "Floors know nothing of the hypergraph: logistic regression with an L1 penalty (its strength by validation), "
    "the true class means where features were drawn from the labels, and a perceptron (MLP). For learned "
    "diffusion the floor is the error of saying that nothing changes. A network below a floor does no better than "
    "the features alone allow, whatever it made of the hypergraph. A ceiling knows how the data were made; it is "
    "neither ranked nor compared.",
    "± is the sample standard deviation over splits. Intervals are 95 % percentile bootstrap intervals of the "
    "mean from 10,000 resamples of the splits; with few splits they are too narrow.",
    "Tests are corrected resampled t-tests (Nadeau and Bengio, 2003) on the differences over shared splits: the "
    "splits overlap, and a test that takes them for independent finds too much. p values are corrected by Holm's "
    "method over all comparisons of a table, or of a claim. A tie is a difference that is not distinguishable "
    "from none at level 0.05; with three splits that is nearly everything, whatever the means look like. So each "
    "table says at which difference its test would have spoken: the level over the number of comparisons, as for the "
    "strongest of them, with the spread that was found.",
    "Ranks are of the means in each column, equals sharing; they are averaged over the columns named. Bold and "
    "ranks go by the splits that the rows of a column share; a row with fewer than half as many splits as the "
    "median row, or trained for other epochs than most, is shown and does not compete.",
    "Times are medians of repeated training steps on all cores of the machine below.",
)


def totals(records: Sequence[JsonObject]) -> str:
    """How many records, and how long they took."""
    failed = sum("failed" in record for record in records)
    seconds = sum(seconds_of(record) for record in records)
    said = f", of which {failed} could not be done" if failed else ""
    return f"{len(records):,} records{said}, {in_hours(seconds)} of computing."


def environments(records: Sequence[JsonObject]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of a table: every machine and set of versions, and how many records it made."""
    counts = Counter(tuple(sorted(record.get("machine", {}).items())) for record in records)
    names = list(dict.fromkeys(name for machine in counts for name, _ in machine))
    rows = [
        [str(count), *(str(dict(machine).get(name, "–")) for name in names)] for machine, count in counts.most_common()
    ]
    return ["records", *(name.replace("_", " ") for name in names)], rows
