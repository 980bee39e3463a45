import pytest

from msmigrate.options import ExpertMesh
from msmigrate.pynative.sections import Parallelism
from msrt.config.degrees import divisors, split

PRODUCT, NESTED = ExpertMesh.PRODUCT, ExpertMesh.NESTED


def parallelism(tensor: int = 1, expert: int = 1, shard: int = -1) -> Parallelism:
    return Parallelism(tensor_parallel=tensor, expert_parallel=expert, data_parallel_shard=shard)


@pytest.mark.parametrize(("tensor", "expert", "data"), [(2, 1, 4), (4, 1, 2), (8, 1, 1), (1, 2, 4), (2, 2, 2)])
def test_the_manuals_table_of_eight_ranks(tensor: int, expert: int, data: int) -> None:
    degrees, problems = split(parallelism(tensor, expert), 8, PRODUCT)
    assert problems == []
    assert degrees is not None
    assert (degrees.data, degrees.shard, degrees.replicate) == (data, data, 1)


@pytest.mark.parametrize(("tensor", "expert", "data"), [(2, 4, 4), (1, 2, 8), (2, 2, 4), (1, 8, 8)])
def test_nested_experts_reuse_the_other_ranks(tensor: int, expert: int, data: int) -> None:
    degrees, problems = split(parallelism(tensor, expert), 8, NESTED)
    assert problems == []
    assert degrees is not None
    assert degrees.data == data


def test_nested_experts_must_divide_shard_times_tensor() -> None:
    _, problems = split(parallelism(tensor=2, expert=3), 8, NESTED)
    assert [problem.key for problem in problems] == ["parallelism.expert_parallel"]
    assert "data_parallel_shard 4 × tensor_parallel 2 = 8" in problems[0].message
    assert "legal values: 1, 2, 4, 8." in problems[0].message


@pytest.mark.parametrize(("shard", "replicate"), [(1, 4), (2, 2), (4, 1), (-1, 1)])
def test_shard_times_replicate_is_data_parallel(shard: int, replicate: int) -> None:
    degrees, problems = split(parallelism(tensor=2, shard=shard), 8, PRODUCT)
    assert problems == []
    assert degrees is not None
    assert degrees.replicate == replicate
    assert degrees.shard * degrees.replicate == degrees.data == 4


@pytest.mark.parametrize("shard", [3, 0, 8])
def test_a_shard_degree_that_does_not_divide_is_refused(shard: int) -> None:
    _, problems = split(parallelism(tensor=2, shard=shard), 8, PRODUCT)
    assert problems[0].message == (
        f"data_parallel_shard {shard} does not divide data_parallel 4 (8 ranks / tensor_parallel 2); "
        "legal values: -1, 1, 2, 4."
    )


def test_too_few_ranks() -> None:
    degrees, problems = split(parallelism(tensor=2), 1, PRODUCT)
    assert degrees is None
    assert problems[0].message == (
        "tensor_parallel 2 needs at least 2 ranks; this run has 1. Several ranks are not there yet; set "
        "parallelism.tensor_parallel: 1."
    )


def test_too_few_ranks_for_the_product_of_two_degrees() -> None:
    _, problems = split(parallelism(tensor=2, expert=4), 4, PRODUCT)
    assert "tensor_parallel 2 × expert_parallel 4 = 8 needs at least 8 ranks; this run has 4." in problems[0].message


def test_ranks_that_a_degree_does_not_divide() -> None:
    _, problems = split(parallelism(tensor=3), 8, PRODUCT)
    assert "8 ranks cannot be divided by tensor_parallel 3" in problems[0].message
    assert "6 and 9" in problems[0].message
    assert "1, 2, 4, 8" in problems[0].message


def test_degrees_below_one_are_all_reported() -> None:
    _, problems = split(parallelism(tensor=0, expert=-2), 8, PRODUCT)
    assert [problem.message for problem in problems] == [
        "is 0; it must be at least 1.",
        "is -2; it must be at least 1.",
    ]


def test_divisors() -> None:
    assert divisors(12) == [1, 2, 3, 4, 6, 12]
