"""Where tensors live and how operators are dispatched: everything that must be set before the first operator runs."""

from functools import cache

import mindspore as ms


def prepare(*, deterministic: bool = False) -> None:
    """Sets PyNative mode for this process: device, dispatch, determinism. Operators use every core it may run on.

    Call it before the first tensor is made. To give a process fewer cores, narrow its CPU affinity before it
    imports mindspore: `runtime.dispatch_threads_num` changes no thread count on a CPU.
    """
    ms.set_context(mode=ms.PYNATIVE_MODE)
    if on_cpu():
        ms.set_device("CPU")
        # Asynchronous dispatch spins in queue waits on a CPU, and reports errors at a later, innocent operator.
        ms.runtime.launch_blocking()
    if deterministic:
        _make_deterministic()


@cache
def _make_deterministic() -> None:
    # MindSpore refuses to be told twice.
    ms.set_deterministic(True)


@cache
def on_cpu() -> bool:
    """Whether operators run on the host's processor, where the fused kernels of this package are used."""
    return bool(ms.get_context("device_target") == "CPU")
