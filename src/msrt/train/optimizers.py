"""From the optimizer section to flat parameters and the optimizer that updates them."""

from collections.abc import Iterable, Mapping

import mindspore as ms

from msmigrate.pynative.sections import Optimizer as Section
from msrt.nn.precision import held_type
from msrt.ops.precision import FLOAT32, Precision
from msrt.optim.adamw import AdamW
from msrt.optim.api import Optimizer
from msrt.optim.decay import decays
from msrt.optim.flat import FlatParameters
from msrt.optim.muon import Muon, MuonSpec, by_muon
from msrt.weights.layout import Layout
from msrt.weights.names import NameRow


def flatten(parameters: list[ms.Parameter], section: Section, precision: Precision = FLOAT32) -> FlatParameters:
    """The parameters as one vector, as the section's optimizer needs them: matrices of Muon's apart.

    `precision` says which of them hold 16 bits.
    """
    include, exclude = section.weight_decay_include, section.weight_decay_exclude
    flags = [decays(item.name, item.shape, include=include, exclude=exclude) for item in parameters]
    apart = [section.type == "Muon" and by_muon(item.name, item.shape) for item in parameters]
    held = [held_type(item.name, item.shape, precision) for item in parameters]
    return FlatParameters(parameters, flags, apart, held)


def make_optimizer(flat: FlatParameters, section: Section, names: Iterable[NameRow] = ()) -> Optimizer:
    """The optimizer that the section describes; `names` say which parameters hold several matrices."""
    if section.type != "Muon":
        return AdamW(flat, betas=section.betas, eps=section.eps, weight_decay=section.weight_decay)
    rest = AdamW(
        flat,
        betas=section.betas if section.adamw_betas is None else section.adamw_betas,
        eps=section.eps if section.adamw_eps is None else section.adamw_eps,
        weight_decay=section.weight_decay,
    )
    spec = MuonSpec(
        section.weight_decay, section.momentum, section.nesterov, section.ns_steps, section.matched_adamw_rms
    )
    return Muon(flat, rest, spec, _layouts(names))


def _layouts(names: Iterable[NameRow]) -> Mapping[str, Layout]:
    """How each parameter is made of matrices, by its name."""
    return {binding.ours: binding.layout for row in names for binding in row.bindings()}
