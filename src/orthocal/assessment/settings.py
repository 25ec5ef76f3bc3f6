"""How a verdict is reached: everything that is not data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orthocal.errors import require_inside, require_whole


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a verdict; those of `assess`."""

    bins: int = 10
    level: float = 0.95
    cost: float | None = None
    by: Mapping[str, Any] = field(default_factory=dict)
    draws: int = 1000
    random_state: Any = None

    def __post_init__(self) -> None:
        require_whole(self.bins, 1, "bins")
        require_inside(self.level, 0, 1, "level")
        require_whole(self.draws, 1, "draws")
