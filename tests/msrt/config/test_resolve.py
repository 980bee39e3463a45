from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmigrate.options import ExpertMesh
from msmigrate.problems import UserError
from msmigrate.pynative import Config, Model
from msmigrate.pynative.sections import LrScheduler, Optimizer, Parallelism, Training
from msrt.config.resolve import resolve, try_resolve

PRODUCT, NESTED = ExpertMesh.PRODUCT, ExpertMesh.NESTED
SCHEDULER = LrScheduler(type="ConstantWarmUpLR", learning_rate=1e-3, warmup_ratio=0.2)


def config(local: int = 1, total: int = 4, tensor: int = 1, expert: int = 1, steps: int = 100) -> Config:
    return Config(
        training=Training(steps=steps, local_batch_size=local, global_batch_size=total),
        parallelism=Parallelism(tensor_parallel=tensor, expert_parallel=expert),
        lr_scheduler=SCHEDULER,
    )


def test_all_numbers_of_a_run() -> None:
    resolved = resolve(config(local=1, total=16, tensor=2), 8)
    assert resolved.data_parallel == 4
    assert resolved.gradient_accumulation_steps == 4
    assert resolved.tokens_per_step == 16 * 4096
    assert resolved.warmup_steps == 20
    assert resolved.expert_mesh == "product"


@pytest.mark.parametrize(("mesh", "data", "accumulation"), [(PRODUCT, 1, 8), (NESTED, 4, 2)])
def test_both_readings_of_expert_parallel(mesh: ExpertMesh, data: int, accumulation: int) -> None:
    resolved = resolve(config(total=8, tensor=2, expert=4), 8, mesh)
    assert (resolved.data_parallel, resolved.gradient_accumulation_steps) == (data, accumulation)


def test_a_global_batch_below_one_unit() -> None:
    with pytest.raises(UserError) as caught:
        resolve(config(total=2, tensor=2), 8)
    assert str(caught.value) == (
        "config: training.global_batch_size (default): global_batch_size 2 is below local_batch_size 1 × "
        "data_parallel 4 (8 ranks / tensor_parallel 2); smallest legal value: 4."
    )


def test_a_global_batch_between_multiples() -> None:
    with pytest.raises(UserError, match=r"10 is not a multiple of .* = 8; nearest legal values: 8 and 16\."):
        resolve(config(local=2, total=10, tensor=2), 8)


@given(
    local=st.integers(1, 4), total=st.integers(1, 64), tensor=st.sampled_from([1, 2, 4]), expert=st.sampled_from([1, 2])
)
def test_accepted_batches_are_exactly_covered(local: int, total: int, tensor: int, expert: int) -> None:
    resolved, problems = try_resolve(config(local, total, tensor, expert), 8, PRODUCT)
    assert (resolved is None) == bool(problems)
    data = 8 // (tensor * expert)
    assert (resolved is not None) == (total % (local * data) == 0)
    if resolved is not None:
        assert resolved.gradient_accumulation_steps * local * data == total
        assert resolved.tensor_parallel * resolved.expert_parallel * resolved.data_parallel == 8


def test_all_violations_are_reported_at_once() -> None:
    broken = replace(
        config(total=3, tensor=2),
        training=Training(global_batch_size=3, max_norm=float("nan")),
        model=Model(num_attention_heads=3, seq_length=128),
        optimizer=Optimizer(
            betas=(0.9, 1.0), eps=0.0, weight_decay=float("nan"), momentum=1.0, adamw_betas=(-1.0, 0.9), adamw_eps=0.0
        ),
        lr_scheduler=LrScheduler(type="ConstantWarmUpLR"),
    )
    _, problems = try_resolve(broken, 4, PRODUCT)
    assert [problem.key for problem in problems] == [
        "training.global_batch_size",
        "parallelism.tensor_parallel",
        "train_dataset.dataloader.config.seq_length",
        "training.max_norm",
        "optimizer.betas",
        "optimizer.adamw_betas",
        "optimizer.eps",
        "optimizer.adamw_eps",
        "optimizer.momentum",
        "optimizer.weight_decay",
        "lr_scheduler.warmup_ratio",
    ]


def test_experts_that_expert_parallel_does_not_divide() -> None:
    broken = replace(config(total=8, expert=4), model=Model(n_routed_experts=6))
    _, problems = try_resolve(broken, 4, PRODUCT)
    assert (
        problems[0].message == "expert_parallel 4 does not divide model.n_routed_experts 6; legal values: 1, 2, 3, 6."
    )
