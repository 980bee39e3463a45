"""A start put into a model and its optimizer, bit for bit."""

from collections.abc import Iterator, Mapping

from mindspore import Parameter

from msmigrate.problems import UserError
from msmigrate.yaml.source import shown_path
from msrt.checkpoint.read import Checkpoint
from msrt.models.api import Model
from msrt.ops.autograd import Array, tensor
from msrt.ops.precision import rounded
from msrt.optim.api import Optimizer
from msrt.train.resume import Start
from msrt.weights.fit import refuse_misfits
from msrt.weights.hf import bound
from msrt.weights.safetensors import FLOATS, widened


def restore(start: Start, model: Model, optimizer: Optimizer) -> None:
    """Fills the model's parameters, and with `start.progress` what the optimizer remembers.

    Raises UserError that lists every tensor that is missing, left over or of a wrong shape; then nothing is changed.
    """
    parameters = dict(model.parameters_and_names())
    flat = optimizer.flat
    slots: dict[str, Array] = {}
    if start.progress is not None:
        slots = {name: values for slot in (*optimizer.slots, flat.masters) for name, values in slot.parts()}
    trained, types = flat.values_by_name, flat.types
    for name, values in _weights(start, parameters, slots, model):
        if name in trained:
            trained[name][...] = rounded(values, types[name])
        else:
            parameters[name].set_data(tensor(values))
    if start.progress is not None:
        assert start.checkpoint is not None
        for name, place in slots.items():
            place[...] = _floats(start.checkpoint, name)
        optimizer.go_on_from(start.progress.updates)
    flat.publish()


def _weights(
    start: Start, parameters: Mapping[str, Parameter], slots: Mapping[str, Array], model: Model
) -> Iterator[tuple[str, Array]]:
    checkpoint = start.checkpoint
    if checkpoint is None:
        for item in bound(parameters, model.name_table(), start.path):
            yield item.binding.ours, item.binding.layout.join([part.load() for part in item.parts])
        return
    stored = checkpoint.weights if start.progress is None else checkpoint.metadata.tensors
    wanted = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    wanted.update((name, values.shape) for name, values in slots.items())
    refuse_misfits(wanted, {name: info.shape for name, info in stored.items()}, shown_path(str(checkpoint.folder)))
    foreign = [f"{name} as {info.dtype}" for name, info in stored.items() if info.dtype not in FLOATS]
    if foreign:
        shown = shown_path(str(checkpoint.folder))
        raise UserError(f"{shown} holds {', '.join(foreign[:5])}; expected one of {', '.join(FLOATS)}.")
    for name in parameters:
        yield name, _floats(checkpoint, name)


def _floats(checkpoint: Checkpoint, name: str) -> Array:
    return widened(checkpoint.raw(name), checkpoint.metadata.tensors[name].dtype)
