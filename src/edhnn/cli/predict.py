"""`edhnn predict` and `edhnn evaluate`: what a run says about a hypergraph, and how right it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from edhnn.cli.options import DeviceName, Json, ReadOptions, Source, check_targets, kind_of, with_read_options
from edhnn.cli.output import console, facts_table, number, print_json, say_notes
from edhnn.data.dataset import NodeDataset
from edhnn.datasets.registry import catalog
from edhnn.errors import DataError, UsageError
from edhnn.io.tables.writer import write_table
from edhnn.runs.evaluate import evaluate_run
from edhnn.runs.predict import load_models
from edhnn.runs.results import prediction_table
from edhnn.training.pretrained import Pretrained

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a folder with a pretrained model.")]
SplitNumber = Annotated[
    int | None, typer.Option("--split", min=0, help="Use this split's model alone; the mean of all if not given.")
]


@with_read_options
def predict_command(
    run: Run,
    source: Source,
    *,
    out: Annotated[Path, typer.Option("--out", help="Write predictions here: .csv, .tsv or .parquet.")],
    split: SplitNumber = None,
    device: DeviceName = "cpu",
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Predict for every node of a hypergraph: the one trained on, a grown one, or another with the same features."""
    check_targets(table=out, overwrite=force)
    models = load_models(run, split)
    dataset = models.first.fitted(_read_like(options, source, models.first))
    say_notes(dataset.provenance.notes)
    answers = models.answers(dataset, device=device)
    write_table(prediction_table(dataset, answers, models.first), out)
    facts = {"predictions": str(out), "num_nodes": len(answers), "models": len(models.members)}
    if as_json:
        print_json(facts)
    else:
        words = f"Written: {out}, {len(answers):,} nodes, by {len(models.members)} models"
        console().print(words, soft_wrap=True, markup=False)


@with_read_options
def evaluate_command(
    run: Run,
    source: Source,
    *,
    split: SplitNumber = None,
    device: DeviceName = "cpu",
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Compare a run's predictions with the labels of a hypergraph; on the run's own data, with test labels only."""
    models = load_models(run, split)
    dataset = _read_like(options, source, models.first, labels=True)
    say_notes(dataset.provenance.notes)
    found = evaluate_run(run, dataset, split, models=models, device=device)
    if as_json:
        print_json(found)
        return
    rows = [(name, number(value)) for name, value in found.items() if not isinstance(value, dict | list)]
    rows += [(f"{group}: {name}", number(value)) for group in ("mean", "std", "together") if found[group]
             for name, value in found[group].items()]  # fmt: skip
    console().print(facts_table(f"{run} on {source}", rows))


def _read_like(options: ReadOptions, source: str, model: Pretrained, *, labels: bool = False) -> NodeDataset:
    """Read data with the columns that a model was trained on, where guessing would find others.

    Features that were drawn from labels are drawn as they were for the model. What the user says wins.

    Args:
        options: What the user said.
        source: A catalogue name, a file or a folder.
        model: The model.
        labels: Whether its label columns are wanted too.

    Returns:
        The data; with other columns than the model's if those are not there, which the model refuses in its own words.
    """
    known = model.reading
    if kind_of(source) == "catalogue":
        if catalog()[source].features != "stored" and "feature_noise" in known:
            noise = known["feature_noise"] if options.noise is None else options.noise
            seed = known["feature_seed"] if options.feature_seed is None else options.feature_seed
            options = replace(options, noise=noise, feature_seed=seed)
        return options.read(source)
    names = model.feature_names if options.features is None else None
    alike = options
    if labels and (label := options.label or known.get("label_columns")):
        alike = replace(options, label=label, task=options.task or model.objective.task)
    for wish, features in ((alike, None), (alike, names), (options, names))[: 1 if names is None else 3]:
        try:
            found = wish.read(source, features=features)
        except UsageError:  # a column is not there: the plain reading or the model will say so
            continue
        except DataError:
            if features is not None:  # what was guessed does not matter, what was meant does
                raise
            continue
        if names is None or set(names) <= set(found.feature_names or ()):
            return found
    return options.read(source)
