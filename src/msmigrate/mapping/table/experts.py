"""Rows for the experts of mcore models: the loss that balances them, and how many tokens each takes."""

from msmigrate.mapping.back.settings import balancing
from msmigrate.mapping.context import Context
from msmigrate.mapping.model_values import SECTION, completion, model_value
from msmigrate.mapping.outcome import Effect, Fate, Outcome, carried, refused, written
from msmigrate.mapping.rows import Row, derived, judged, leaf_value
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import spell

_BALANCING = "moe_router_load_balancing_type"
_CLOSEST = {"gbs_aux_loss": "global_aux_loss", "sub_seq_aux_loss": "seq_aux_loss"}
"""Balance losses of graph mode that PyNative mode does not have, and the closest that it has."""
_DEFAULT_BALANCING = "sub_seq_aux_loss"


def _balancing(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = leaf_value(leaf)
    if not isinstance(value, str) or value not in _CLOSEST:
        return row.carry(leaf)
    coefficient = model_value(context, "moe_aux_loss_coeff")
    if coefficient in (0, 0.0):
        return written(
            Fate.COMPUTED, str(row.pynative), _CLOSEST[value], "moe_aux_loss_coeff is 0, so no balance loss is added"
        )
    return _closest_balancing(context, value, f"{value} has no PyNative counterpart")


def _closest_balancing(context: Context, value: str, found: str) -> Outcome:
    """The closest balance loss, written only when losses are allowed."""
    closest, target = _CLOSEST[value], f"model.{_BALANCING}"
    why = f"{found}; {closest} averages over other tokens"
    if context.options.allow_lossy:
        return written(Fate.COMPUTED, target, closest, why, effect=Effect.TRAINING)
    return refused(why, pynative=target, advice=f"--allow-lossy writes {closest}")


def _balancing_left_out(context: Context) -> Outcome | None:
    """Both modes default to a balance loss that PyNative mode's router refuses once the coefficient is above 0."""
    completed = completion(context, _BALANCING)
    coefficient = model_value(context, "moe_aux_loss_coeff")
    known = completed is not None or context.graph.given(f"{SECTION}.{_BALANCING}")
    if known or not isinstance(coefficient, (int, float)) or coefficient <= 0:
        return completed
    return _closest_balancing(
        context,
        _DEFAULT_BALANCING,
        f"moe_aux_loss_coeff is {coefficient} and the file gives no {_BALANCING}: graph mode's default "
        f"{_DEFAULT_BALANCING} has no PyNative counterpart",
    )


def _deleted_coefficient(context: Context, row: Row, leaf: Leaf) -> Outcome:
    """The Hugging Face name of the balance loss's weight, which the readers of both modes ignore."""
    held, value = model_value(context, "moe_aux_loss_coeff"), leaf_value(leaf)
    if value is None:
        return row.carry(leaf)
    found = f"`{row.graph}` (line {leaf.node.span.start.line}) is {spell(value)}"
    if held is None:
        why = "no reader takes it; without moe_aux_loss_coeff no balance loss is added, in either mode"
        if value:
            context.note(f"{found}: {why}")
    else:
        why = f"no reader takes it; moe_aux_loss_coeff, {spell(held)}, holds in both modes"
        if value != held:
            context.note(f"{found}: {why}")
    return carried(Fate.FLATTENED, str(row.pynative), leaf.node, why)


def _capacity(context: Context, row: Row, leaf: Leaf) -> Outcome:
    """A bound on the tokens of an expert; null or below 0 is none."""
    value = leaf_value(leaf)
    if not isinstance(value, (int, float)) or value <= 0:
        return row.carry(leaf)
    return refused(
        f"moe_expert_capacity_factor {value} drops the tokens over an expert's capacity; PyNative layers drop none"
    )


ROWS: tuple[Row, ...] = (
    judged(
        f"{SECTION}.{_BALANCING}",
        f"model.{_BALANCING}",
        "10",
        _balancing,
        Fate.FLATTENED,
        back=balancing,
        about=f"carried; {' and '.join(_CLOSEST)} are refused while moe_aux_loss_coeff is not 0, --allow-lossy writes "
        "the closest",
        effect=Effect.TRAINING,
    ),
    derived(
        f"model.{_BALANCING}",
        "10",
        _balancing_left_out,
        about=f"refused with moe_aux_loss_coeff above 0: graph mode's default {_DEFAULT_BALANCING} has no counterpart; "
        "--allow-lossy writes the closest",
    ),
    judged(
        f"{SECTION}.router_aux_loss_coef",
        "model.router_aux_loss_coef",
        None,
        _deleted_coefficient,
        Fate.FLATTENED,
        about="carried; no reader takes it, and moe_aux_loss_coeff holds in both modes",
    ),
    judged(
        f"{SECTION}.moe_expert_capacity_factor",
        "model.moe_expert_capacity_factor",
        "10",
        _capacity,
        Fate.FLATTENED,
        about="refused above 0, where an expert drops tokens: PyNative layers drop none",
        effect=Effect.TRAINING,
    ),
)
