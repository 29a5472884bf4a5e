"""How likely something helps, from how often it has: a Beta posterior for the mean, Wilson's interval for the bounds.

Both are a line of arithmetic, so that anybody can check a number that a proposal shows."""

from typing import Final

from mendflow.core.model.learning import Rate

Z_95: Final = 1.959963984540054


def posterior_mean(helped: float, tried: float, *, prior: float = 0.5, weight: float = 2.0) -> float:
    """The mean of the Beta posterior. The prior says `prior`, and counts as much as `weight` tries."""
    return (helped + prior * weight) / (tried + weight)


def wilson_interval(helped: int, tried: int, z: float = Z_95) -> tuple[float, float]:
    """The bounds of the true rate, with 95 % confidence. Nothing tried: anything is possible."""
    if tried <= 0:
        return 0.0, 1.0
    share, square = helped / tried, z * z
    middle = share + square / (2 * tried)
    spread = z * ((share * (1 - share) + square / (4 * tried)) / tried) ** 0.5
    below = 1 + square / tried
    return max(0.0, (middle - spread) / below), min(1.0, (middle + spread) / below)


def rate_of(helped: int, tried: int) -> Rate:
    low, high = wilson_interval(helped, tried)
    mean = posterior_mean(helped, tried)
    return Rate(helped=helped, tried=tried, mean=round(mean, 4), low=round(low, 4), high=round(high, 4))


def stands_out(failed: int, tried: int, others_failed: int, others_tried: int, *, times: float = 2.0) -> bool:
    """Whether a place fails more than all others: even its lowest likely rate is `times` their highest."""
    low, _ = wilson_interval(failed, tried)
    _, high = wilson_interval(others_failed, others_tried)
    return others_tried > 0 and low > times * high


def median(numbers: list[int]) -> int:
    """The middle one; 0 of none."""
    return sorted(numbers)[len(numbers) // 2] if numbers else 0
