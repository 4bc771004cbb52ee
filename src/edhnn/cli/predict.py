"""`edhnn predict` and `edhnn evaluate`: what a run says about a hypergraph, and how right it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edhnn.cli.options import Json, ReadOptions, Source, with_read_options
from edhnn.cli.output import console, facts_table, number, print_json
from edhnn.data.writers import refuse_existing
from edhnn.data.writers.tables import write_table
from edhnn.training.ensemble import load_models
from edhnn.training.evaluate import evaluate_run
from edhnn.training.predictions import prediction_table

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
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    as_json: Json = False,
    options: ReadOptions,
) -> None:
    """Predict for every node of a hypergraph: the one trained on, a grown one, or another with the same features."""
    refuse_existing([out], overwrite=force)
    models = load_models(run, split)
    dataset = models.first.fitted(options.read(source))
    answers = models.answers(dataset)
    write_table(prediction_table(dataset, answers, models.first), out)
    facts = {"predictions": str(out), "num_nodes": len(answers), "models": len(models.members)}
    if as_json:
        print_json(facts)
    else:
        console().print(f"Written: {out}, {len(answers):,} nodes, by {len(models.members)} models", soft_wrap=True)


@with_read_options
def evaluate_command(
    run: Run, source: Source, *, split: SplitNumber = None, as_json: Json = False, options: ReadOptions
) -> None:
    """Compare a run's predictions with the labels of a hypergraph; on the run's own data, with test labels only."""
    found = evaluate_run(run, options.read(source), split)
    if as_json:
        print_json(found)
        return
    rows = [(name, number(value)) for name, value in found.items() if not isinstance(value, dict | list)]
    rows += [(f"{group}: {name}", number(value)) for group in ("mean", "std", "together") if found[group]
             for name, value in found[group].items()]  # fmt: skip
    console().print(facts_table(f"{run} on {source}", rows))
