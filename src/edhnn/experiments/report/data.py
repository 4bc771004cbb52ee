"""The report as data, for machines."""

from __future__ import annotations

from dataclasses import asdict

from edhnn.experiments.report.choose import Content
from edhnn.experiments.report.notes import notes_of
from edhnn.experiments.report.view import View
from edhnn.typing import JsonObject


def report_data(content: Content) -> JsonObject:
    """Tables and claims as JSON."""
    return {
        "claims": [{**asdict(claim), "evidence": list(claim.evidence)} for claim in content.claims],
        "tables": [_table(view) for view in content.views],
        "not_run": list(content.absent),
    }


def _table(view: View) -> JsonObject:
    experiment, findings = view.grid.experiment, view.findings
    return {
        "name": view.name,
        "title": experiment.title,
        "paper": experiment.paper,
        "kind": experiment.kind,
        "reference": findings.reference if findings.contrasts else None,
        "rows": [
            {
                "row": line.label,
                "kind": line.kind,
                "mean_rank": findings.ranks.get(line.label),
                "win_tie_loss": list(findings.tally(line.label)) if findings.contrasts else None,
                "cells": {
                    column: _cell(view, line.label, column)
                    for column in view.grid.columns
                    if (line.label, column) in view.grid.cells
                },
            }
            for line in view.grid.lines
        ],
        "notes": notes_of(view),
    }


def _cell(view: View, row: str, column: str) -> JsonObject:
    cell, summary = view.grid.cells[row, column], view.findings.summaries.get((row, column))
    printed, contrast = view.printed(row, column), view.findings.contrasts.get((row, column))
    return {
        "state": cell.state,
        "mean": None if summary is None else summary.mean,
        "std": None if summary is None else summary.std,
        "interval": None if summary is None or summary.low is None else [summary.low, summary.high],
        "splits": len(cell.values),
        "splits_asked": cell.asked,
        "inference": cell.mean_of("inference"),
        "paper": None if printed is None else {"mean": printed.mean, "std": printed.std},
        "difference": view.difference(row, column),
        "reference_is": None if contrast is None else contrast.outcome,
        "adjusted_p": None if contrast is None else contrast.adjusted,
        "source": cell.cell.source,
        "changed": cell.cell.changed,
        "epochs_instead": cell.epochs,
        "failures": list(cell.failures),
    }
