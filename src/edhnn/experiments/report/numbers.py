"""Numbers as a page shows them: as many digits as the kind of an experiment deserves, and a true minus."""

from __future__ import annotations

from edhnn.experiments.spec import KindName


def shown(value: float, kind: KindName) -> str:
    """A number.

    Examples:
        >>> shown(80.314, "accuracy"), shown(2708.0, "statistics"), shown(0.03214, "timing")
        ('80.31', '2,708', '0.0321')
    """
    if kind == "accuracy":
        text = f"{value:.2f}"
    elif kind == "statistics":
        text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"
    else:
        text = f"{value:.4f}" if kind == "diffusion" else f"{value:.3g}"
    return text.replace("-", "−")


def with_spread(mean: float, std: float | None, kind: KindName) -> str:
    """A mean and, if there is one, its standard deviation."""
    return shown(mean, kind) if std is None else f"{shown(mean, kind)} ± {shown(std, kind)}"


def milliseconds(seconds: float) -> str:
    """A time to three digits or so.

    Examples:
        >>> milliseconds(0.00545), milliseconds(0.0528), milliseconds(1.1576)
        ('5.45', '52.8', '1,158')
    """
    value = 1e3 * seconds
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def signed(value: float, kind: KindName) -> str:
    """A difference.

    Examples:
        >>> signed(-0.4, "accuracy"), signed(0.001, "accuracy")
        ('−0.40', '0.00')
    """
    text = shown(abs(value), kind)
    if not any(digit in text for digit in "123456789"):
        return text
    return f"{'+' if value > 0 else '−'}{text}"


def shown_p(value: float) -> str:
    """A p value."""
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def in_hours(seconds: float) -> str:
    """A time for people."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"
