"""A claim gets a verdict from the records, and says on what.

A claim of many comparisons fails by one clear counterexample; it holds only if every comparison is clear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

from edhnn.experiments.comparison import Outcome
from edhnn.experiments.findings import TEST_TO_TRAIN, Contrast, contrast_family, least_gains
from edhnn.experiments.gathered import Grid

Verdict = Literal["holds", "does not hold", "not distinguishable", "not enough records"]
Family = dict[tuple[str, str], Mapping[int, float]]

_NOTHING = 1e-9
"""A mean gain up to this is none: what is left of a sum in another order."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim and what the records say of it.

    Attributes:
        statement: The claim.
        experiment: The experiment it is about.
        verdict: Whether it holds.
        evidence: Why, in sentences.
        rests_on: How many splits the comparisons share, as a sentence; nothing without any.
        papers: Whether the paper claims it; a question of ours otherwise.
    """

    statement: str
    experiment: str
    verdict: Verdict
    evidence: Sequence[str]
    rests_on: str = ""
    papers: bool = True


def judge_claim(grid: Grid, statement: str, family: Family, success: str, *, papers: bool = True) -> Claim:
    """Test a claim that every comparison of a family comes out well.

    Args:
        grid: The experiment with its scores.
        statement: The claim.
        family: By column and row, how much better the one is that should be, on each split.
        success: What it means that a comparison comes out well.
        papers: Whether the paper claims it.
    """
    contrasts = contrast_family(family, TEST_TO_TRAIN[grid.experiment.kind])
    missing = [name for name in family if name not in contrasts]
    said = [contrast.outcome for contrast in contrasts.values()]
    ahead = sum(contrast.gain > _NOTHING for contrast in contrasts.values())
    evidence = [
        f"{success[0].upper()}{success[1:]} in {said.count('better')} of {len(family)} "
        f"comparison{'s' * (len(family) != 1)}; not distinguishable in {said.count('not distinguishable')}, "
        f"the opposite in {said.count('worse')}. "
        f"By the means alone: in {ahead} of {len(contrasts)}."
    ]
    evidence += _listed("The opposite", contrasts, "worse")
    evidence += _listed("Not distinguishable", contrasts, "not distinguishable")
    if "not distinguishable" in said:
        least = least_gains((column, contrast) for (column, _), contrast in contrasts.items())
        seen = ", ".join(f"{gain:.2g} ({column})" for column, gain in least.items())
        evidence.append(f"A gain would have been clear at about {seen}, the median of a column.")
    few = [name for name, contrast in contrasts.items() if contrast.outcome == "not enough splits"]
    if missing or few:
        evidence.append(f"Without enough records: {_left_out([*missing, *few], list(family))}.")
    shared = sorted({contrast.shared for contrast in contrasts.values()})
    rests = f"Shared splits: {' to '.join(map(str, dict.fromkeys((shared[0], shared[-1]))))}." if shared else ""
    return Claim(
        statement=statement,
        experiment=grid.experiment.name,
        verdict=decide(said, complete=not missing),
        evidence=evidence,
        rests_on=rests,
        papers=papers,
    )


def decide(outcomes: Sequence[Outcome], *, complete: bool) -> Verdict:
    """The verdict on a claim that every comparison comes out ``better``."""
    if "worse" in outcomes:
        return "does not hold"
    if not complete or not outcomes or "not enough splits" in outcomes:
        return "not enough records"
    return "not distinguishable" if "not distinguishable" in outcomes else "holds"


def _listed(what: str, contrasts: Mapping[tuple[str, str], Contrast], outcome: Outcome) -> list[str]:
    chosen = [
        (*name, f"{contrast.gain:+.3g}".replace("-", "−"))
        for name, contrast in contrasts.items()
        if contrast.outcome == outcome
    ]
    return [f"{what}: {_by_column(chosen)}."] if chosen else []


def _by_column(named: Iterable[tuple[str, str, str]]) -> str:
    """``Cora: MLP (+1.2), HGNN (+0.3); House: ...``."""
    by_column: dict[str, list[str]] = {}
    for column, row, gain in named:
        by_column.setdefault(column, []).append(f"{row} ({gain})" if gain else row)
    return "; ".join(f"{column}: {', '.join(rows)}" for column, rows in by_column.items())


def _left_out(names: Sequence[tuple[str, str]], everything: Sequence[tuple[str, str]]) -> str:
    """As `_by_column`; a column of which nothing is known is named alone."""
    known = set(everything) - set(names)
    whole = {column for column, _ in names} - {column for column, _ in known}
    parts = [", ".join(column for column in dict.fromkeys(column for column, _ in names) if column in whole)]
    parts.append(_by_column((column, row, "") for column, row in names if column not in whole))
    return "; ".join(part for part in parts if part)
