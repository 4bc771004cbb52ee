"""Calls under `torch.autocast`: the whole module computes in the type of autocast."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.func import functional_call


class AutocastModule(nn.Module):
    """A module that computes in one type under `torch.autocast`, with float32 parameters and gradients.

    PyTorch's autocast would choose a type per operation, but our kernels take one type for all their arguments. So a
    call under autocast computes what ``copy.deepcopy(module).bfloat16()`` does. The cast is part of the graph: the
    parameters keep their type and get their gradients in it. Parameters in float64 are left alone, as autocast does.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        weight = next(self.parameters(), None)
        device = "cpu" if weight is None else weight.device.type
        if weight is None or not torch.amp.is_autocast_available(device) or not torch.is_autocast_enabled(device):
            return super().__call__(*args, **kwargs)
        dtype = torch.get_autocast_dtype(device)
        cast = {name: one.to(dtype) for name, one in self.named_parameters() if one.dtype == torch.float32}
        with torch.autocast(device, enabled=False):
            return functional_call(self, cast, args, kwargs)
