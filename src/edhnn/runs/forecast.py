"""Forecast what a run costs: the plan's model, its epochs, its splits, and the processes that share them."""

from __future__ import annotations

from dataclasses import asdict

from edhnn.data.dataset import NodeDataset
from edhnn.doctor.cost import Forecast, ModelSize, forecast
from edhnn.runs.plan import Plan
from edhnn.runs.run import choose_jobs


def forecast_run(dataset: NodeDataset, plan: Plan, *, jobs: int | None = None) -> Forecast:
    """Forecast memory and time of `train` with a plan on this machine, after a few seconds.

    Args:
        dataset: The dataset, with features.
        plan: The plan of a model with the options of ED-HNN.
        jobs: Number of splits trained at the same time; by default `choose_jobs` decides, as in `train`.

    Example:
        >>> from edhnn import contextual_sbm
        >>> from edhnn.runs import forecast_run, make_plan
        >>> data = contextual_sbm(1, nodes_per_class=50, num_hyperedges=60)
        >>> cost = forecast_run(data, make_plan(data, settings={"epochs": 100}))
        >>> cost.size.epochs, cost.fits
        (100, True)
    """
    options = asdict(plan.config)
    layers = max(options.get(name, 0) for name in ("phi_layers", "rho_layers", "update_layers"))
    size = ModelSize(
        hidden=options["hidden"],
        num_iterations=options["num_iterations"],
        mlp_layers=max(layers, 1),
        classifier_hidden=options["classifier_hidden"],
        classifier_layers=options["classifier_layers"],
        dropout=options["dropout"] > 0 or options["input_dropout"] > 0,
        self_loops="add_singletons" in (plan.train.transforms or ()),
        epochs=plan.train.epochs,
        splits=plan.num_splits,
    )
    workers = min(jobs or choose_jobs(dataset, plan, plan.num_splits), plan.num_splits)
    return forecast(dataset, size, model=plan.model, options=options, jobs=workers)
