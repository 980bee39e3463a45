import pytest

from msrt.optim.decay import decays

MATRIX, VECTOR = (4, 4), (4,)


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("embedding.word_embeddings.weight", MATRIX, True),
        ("decoder.layers.1.mlp.experts.weight1", (8, 4, 4), True),
        ("decoder.layers.0.input_layernorm.weight", VECTOR, False),
        ("decoder.layers.0.linear.bias", MATRIX, False),
    ],
)
def test_matrices_decay_vectors_and_biases_do_not(name: str, shape: tuple[int, ...], expected: bool) -> None:
    assert decays(name, shape) is expected


@pytest.mark.parametrize("rule", ["a.word_embeddings.weight", "embed", "*.word_*", "a.*weight"])
def test_a_rule_matches_equal_names_parts_and_wildcards(rule: str) -> None:
    assert not decays("a.word_embeddings.weight", MATRIX, exclude=[rule])
    assert decays("b.linear.w", MATRIX, exclude=[rule])


def test_include_stands_above_exclude_and_the_default() -> None:
    assert decays("norm.weight", VECTOR, include=["norm"], exclude=["weight"])
    assert not decays("linear.weight", MATRIX, include=["norm"], exclude=["weight"])
