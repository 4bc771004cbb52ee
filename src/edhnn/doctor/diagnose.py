"""Examine a dataset: summarise it and find problems in it.

`examine` runs every check and sorts the findings by severity. It changes nothing and accepts any dataset, also one
without nodes, hyperedges or labels. `edhnn.doctor.cost.forecast` forecasts the cost of training, and
`edhnn.plotting.dataset.draw` draws the dataset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import final

from edhnn.data.dataset import NodeDataset
from edhnn.doctor.checks import SEVERITIES, Finding, Severity, check_features, check_ids, check_labels, check_structure
from edhnn.doctor.summary import MAX_CLIQUE_PAIRS, describe_dataset, facts_from_statistics
from edhnn.hypergraph.statistics import Statistics
from edhnn.typing import JsonObject


@final
@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of an examination.

    Attributes:
        facts: The facts of the dataset (`edhnn.doctor.summary.facts`).
        findings: The problems, errors first.
    """

    facts: JsonObject
    findings: tuple[Finding, ...]

    def count(self, severity: Severity) -> int:
        """Count the findings of one severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def to_json(self) -> JsonObject:
        """Return facts and findings as JSON."""
        findings = [
            {**asdict(finding), "examples": list(finding.examples), "clean": list(finding.clean)}
            for finding in self.findings
        ]
        return {"facts": self.facts, "findings": findings}


def examine(dataset: NodeDataset, *, max_clique_pairs: int | None = MAX_CLIQUE_PAIRS) -> Diagnosis:
    """Examine a dataset.

    Args:
        dataset: The dataset.
        max_clique_pairs: Largest number of node pairs to examine for homophily; a note reports what is skipped.

    Returns:
        The facts and the findings, errors first.
    """
    statistics = describe_dataset(dataset, max_clique_pairs=max_clique_pairs)
    findings = [
        *check_structure(dataset, statistics),
        *check_ids(dataset),
        *check_labels(dataset),
        *check_features(dataset),
        *_skipped_homophily(dataset, statistics, max_clique_pairs),
        *(Finding(severity="note", code="reader", message=note) for note in dataset.provenance.notes),
    ]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Diagnosis(facts_from_statistics(dataset, statistics), tuple(findings))


def _skipped_homophily(dataset: NodeDataset, statistics: Statistics, budget: int | None) -> Iterator[Finding]:
    if dataset.task != "classification" or budget is None or statistics.clique_pairs <= budget:
        return
    yield Finding(
        severity="note",
        code="homophily-left-out",
        message=f"Homophily on the clique expansion was skipped: it needs {statistics.clique_pairs:.1e} node pairs, "
        f"more than {budget:.1e}. Only the weighted homophily, which needs none, was computed.",
        remedy="In Python, allow more pairs with `max_clique_pairs=`.",
        count=statistics.clique_pairs,
    )
