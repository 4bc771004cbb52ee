"""`edhnn presets`: the recorded sizes of a model for the datasets of the catalogue; for ED-HNN the paper's Table 6."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from edhnn.cli.options import Json
from edhnn.cli.output import console, print_json
from edhnn.training.preset_table import tabulate
from edhnn.training.presets import list_presets


def presets_command(
    *,
    model: Annotated[str, typer.Option("--model", help="The model; `edhnn models` lists them.")] = "ed-hnn",
    as_json: Json = False,
) -> None:
    """List the sizes that `edhnn train DATASET --preset paper` and `official` use, and where they come from."""
    found = list_presets(model)
    if as_json:
        print_json(
            [
                {
                    "preset": name,
                    "dataset": dataset,
                    "model": preset.model,
                    "options": preset.options,
                    "train": preset.train,
                    "origin": preset.origin,
                }
                for name, presets in found.items()
                for dataset, preset in presets.items()
            ]
        )
        return
    for name, presets in found.items():
        sizes = tabulate(presets)
        table = Table(box=SIMPLE_HEAD, title=f"--preset {name}", title_justify="left")
        table.add_column("dataset")
        table.add_column("sizes")
        for dataset, *values in sizes.rows:
            listed = zip(sizes.headings[1:], values, strict=True)
            table.add_row(dataset, ", ".join(f"{option}={value}" for option, value in listed))
        console().print(table)
        console().print(f"For all: {', '.join(f'{key}={value}' for key, value in sizes.common.items())}")
        console().print(*sizes.origins, "", sep="\n")
