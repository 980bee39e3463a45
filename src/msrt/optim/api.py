"""What every optimizer offers to the training loop."""

from typing import Protocol

from msrt.optim.flat import FlatParameters, Slot


class Optimizer(Protocol):
    """Updates the parameters of `flat` from the gradients there."""

    @property
    def flat(self) -> FlatParameters: ...

    @property
    def updates(self) -> int:
        """Updates done; skipped steps are none."""
        ...

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What it remembers of every parameter, under MindFormers' names."""
        ...

    def go_on_from(self, updates: int) -> None:
        """Count on from `updates`: the slots have been filled with what they held then."""
        ...

    def update(self, learning_rate: float) -> None:
        """Apply `flat.gradients` with the rate of this step, in place."""
        ...
