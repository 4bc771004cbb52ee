"""`edhnn predict` and `edhnn evaluate`: apply the models of a run to a hypergraph, and score them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from edhnn.cli.options import (
    DeviceName,
    ReadOptions,
    Source,
    SpreadsheetSafe,
    check_targets,
    is_catalogue_name,
    with_read_options,
)
from edhnn.cli.output import (
    Json,
    console,
    facts_table,
    number,
    print_json,
    print_line,
    print_notes,
    warnings_as_notes,
)
from edhnn.data.dataset import NodeDataset
from edhnn.datasets.registry import catalog
from edhnn.errors import DataError, UsageError
from edhnn.io.formats import FORMATS, detect_format
from edhnn.io.tables.writer import write_table
from edhnn.runs.evaluate import evaluate_run
from edhnn.runs.predict import load_models, mean_of
from edhnn.runs.results import prediction_table
from edhnn.training.pretrained import Pretrained

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder, or folder of a pretrained model.")]
SplitNumber = Annotated[
    int | None, typer.Option("--split", min=0, help="Use only the model of this split; default: the mean of all.")
]


@with_read_options
def predict_command(
    run: Run,
    source: Source,
    *,
    out: Annotated[Path, typer.Option("--out", help="Write the predictions to this .csv, .tsv or .parquet file.")],
    split: SplitNumber = None,
    device: DeviceName = "cpu",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Predict for every node: of the training data, of a grown version, or of other data with the same features."""
    check_targets(table=out, overwrite=force)
    models = load_models(run, split)
    told = any(member.config.label_inputs for member in models.members)
    read = _read_like(options, source, models.first, labels=told)
    with warnings_as_notes():
        dataset = models.first.fitted(read)
    print_notes(dataset.provenance.notes)
    with warnings_as_notes():
        labels = models.known_labels(dataset)
        answers = mean_of(models.answers_from(models.outputs(dataset, device=device, labels=labels)))
    write_table(prediction_table(dataset, answers, models.first), out, spreadsheet_safe=spreadsheet_safe)
    facts = {"predictions": str(out), "num_nodes": len(answers), "models": len(models.members)}
    if told:
        facts["labels_used"] = 0 if labels is None else len(labels[0])
    if as_json:
        print_json(facts)
    else:
        used = f", with {facts['labels_used']:,} labels of the file as inputs" if told else ""
        print_line(f"Written: {out}, {len(answers):,} nodes, by {len(models.members)} models{used}")


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
    """Compare the predictions of a run with labels. On its training data, only test labels are used."""
    models = load_models(run, split)
    dataset = _read_like(options, source, models.first, labels=True)
    print_notes(dataset.provenance.notes)
    with warnings_as_notes():
        scores = evaluate_run(run, dataset, split, models=models, device=device)
    if as_json:
        print_json(scores)
        return
    groups = [group for group in ("mean", "std", "together", "out_of_fold") if scores[group]]
    rows = [(name, number(value)) for name, value in scores.items() if isinstance(value, str | int | float)]
    rows += [(f"{group.replace('_', ' ')}: {name}", number(value)) for group in groups
             for name, value in scores[group].items()]  # fmt: skip
    console().print(facts_table(f"{run} on {source}", rows))


def _read_like(options: ReadOptions, source: str, model: Pretrained, *, labels: bool = False) -> NodeDataset:
    """Read data with the columns that a model was trained on, and encode features as in its training.

    Features drawn from labels are drawn as for the model. Models of earlier versions recorded no encoding: their
    columns are requested by name where guessing would choose other columns. Options of the user take precedence.

    Args:
        options: The options of the user.
        source: A catalogue name, a file or a folder.
        model: The model.
        labels: Whether its label columns are needed too.

    Returns:
        The data. Columns of the model may be missing; the model then raises an error that names them.
    """
    recorded = model.reading
    if is_catalogue_name(source):
        if catalog()[source].features != "stored" and "feature_noise" in recorded:
            noise = recorded["feature_noise"] if options.noise is None else options.noise
            seed = recorded["feature_seed"] if options.feature_seed is None else options.feature_seed
            options = replace(options, noise=noise, feature_seed=seed)
        return options.read(source)
    if "encoding" in recorded:
        if labels and options.label:
            options = replace(options, task=options.task or model.objective.task)
        return options.read(source, like={**recorded, "task": model.objective.task}, labels=labels)
    like = {"columns": recorded["columns"]} if "columns" in recorded else None
    makes_features = "structural_features" in recorded and options.features is None
    if makes_features and FORMATS[options.format or detect_format(Path(source))].options != "none":
        options = replace(options, features="")  # guess nothing that the model would not use
    names = model.feature_names if options.features is None and "structural_features" not in recorded else None
    labelled = options
    if labels and (label := options.label or recorded.get("label_columns")):
        labelled = replace(options, label=label, task=options.task or model.objective.task)
    attempts = ((labelled, None), (labelled, names), (options, names))
    for request, features in attempts[: 1 if names is None else 3]:
        try:
            dataset = request.read(source, features=features, like=like)
        except UsageError:  # a column is missing: the last reading below or the model reports it
            continue
        except DataError:
            if features is not None:  # an error in a guessed column does not matter
                raise
            continue
        if names is None or set(names) <= set(dataset.feature_names or ()):
            return dataset
    return options.read(source, like=like)
