"""Pictures with names that look like mathematics or use scripts missing from the font."""

import warnings

import numpy as np

from edhnn.plotting.style import save_figure
from edhnn.plotting.training import confusion_picture, error_picture, learning_curve

TITLE = "ed-hnn on $10%-$20%, 日本"


def test_names_are_drawn_as_plain_text(tmp_path):
    metrics = {"accuracy": 0.5}
    epoch = {"epoch": 1, "loss": 1.0, "train": metrics, "valid": metrics, "best_epoch": 1}
    figures = [
        confusion_picture(np.eye(2, dtype=np.int64), ["$10%-$20%", "日本"], TITLE),
        learning_curve([[epoch]], "accuracy", TITLE),
        error_picture([0.0, 1.0], [0.0, 1.0], TITLE),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, figure in enumerate(figures):
            save_figure(figure, tmp_path / f"{number}.png")
            assert (tmp_path / f"{number}.png").stat().st_size
