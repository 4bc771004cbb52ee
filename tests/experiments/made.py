"""Synthetic records for tests, in the format of `edhnn run`, with chosen scores."""

from edhnn.experiments.jobs import Job, cells_of
from edhnn.experiments.records import Records

MACHINE = {"edhnn": "0", "python": "3", "threads": 1}


def made_record(cell, split, value, **more):
    return {
        "format": 1,
        "key": Job(cell, split).key,
        "experiment": cell.experiment,
        "row": cell.row,
        "column": cell.column,
        "split": split,
        "settings": cell.settings,
        "source": cell.source,
        "metrics": {"value": value, "num_parameters": 7, **more},
        "seconds": 60.0,
        "machine": MACHINE,
    }


def made_records(experiment, value, *, splits=None, epochs=None, **more):
    """Return a record for every cell and split with score ``value(cell, split)``; none if that is ``None``."""
    return [
        made_record(cell, split, score, **more)
        for cell in cells_of(experiment, epochs)
        for split in range(splits or experiment.splits)
        if (score := value(cell, split)) is not None
    ]


def failed_record(cell, split, why):
    record = made_record(cell, split, 0.0)
    del record["metrics"]
    return {**record, "failed": why}


def write_records(folder, records):
    for record in records:
        Records(folder).append(record["experiment"], {key: record[key] for key in record if key != "format"})
    return folder
