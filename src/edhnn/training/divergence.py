"""Training that left the finite numbers: what is reported, and where to look."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from edhnn.errors import EdhnnError


class DivergedError(EdhnnError):
    """The loss or the outputs stopped being finite.

    Args:
        epoch: The epoch it was noticed in.
        where: The first place found.
        remedy: What to do.
        best_epoch: The epoch whose parameters the model holds now; 0 if it holds none that are good.
    """

    def __init__(self, epoch: int, where: str, remedy: str, *, best_epoch: int = 0) -> None:
        self.epoch, self.where, self.best_epoch = epoch, where, best_epoch
        kept = f" The model of epoch {best_epoch}, the best until then, is kept." if best_epoch else ""
        super().__init__(f"The loss must stay finite. At epoch {epoch} it is not: {where}. {remedy}{kept}")


def first_culprit(model: nn.Module, *inputs: Any) -> str:
    """The first parameter that is not finite; if all are, the first module whose output is not."""
    bad = [name for name, parameter in model.named_parameters() if not bool(parameter.isfinite().all())]
    if bad:
        return f"parameter '{bad[0]}' holds a value that is not" + (f" ({len(bad)} do)" if len(bad) > 1 else "")
    found: list[str] = []
    hooks = [
        module.register_forward_hook(lambda _, __, out, name=name: _note(found, name, out))
        for name, module in model.named_modules()
        if name
    ]
    try:
        with torch.no_grad():
            model(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return f"the output of '{found[0]}' overflows" if found else "the outputs overflow"


def _note(found: list[str], name: str, out: object) -> None:
    if isinstance(out, Tensor) and not bool(out.isfinite().all()):
        found.append(name)
