"""What every optimizer offers to the training loop."""

from typing import Protocol

from msrt.optim.flat import FlatParameters


class Optimizer(Protocol):
    """Updates the parameters of `flat` from the gradients there."""

    @property
    def flat(self) -> FlatParameters: ...

    @property
    def updates(self) -> int:
        """Updates done; skipped steps are none."""
        ...

    def update(self, learning_rate: float) -> None:
        """Apply `flat.gradients` with the rate of this step, in place."""
        ...
