"""Generated pynative files to graph mode and back: the same run."""

from graph_text import document, output
from hypothesis import given, settings
from hypothesis import strategies as st
from pynative_text import reversed_

from msmigrate.mapping.layers import ranges
from msmigrate.options import ExpertMesh, Options
from msmigrate.yaml.document import value_of
from msmigrate.yaml.scalars import spell


@st.composite
def files(draw: st.DrawFn) -> tuple[str, Options]:
    """A legal pynative file, and the options that turn it back."""
    local, replicas, accumulation = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    tensor, layers = draw(st.sampled_from([1, 2, 4])), draw(st.integers(1, 9))
    batch = local * replicas * accumulation
    steps, per_epoch = draw(st.integers(1, 500)), draw(st.integers(1, 120))
    ids = sorted(draw(st.sets(st.integers(0, layers - 1))))
    recompute = f"recompute:\n  mode: full\n  full_recompute_layer: {spell(ranges(ids))}\n" if ids else ""
    enabled = "recompute_comm:\n  enable: False\n" if draw(st.booleans()) else ""
    seed = f"  seed: {draw(st.integers(0, 99))}\n" if draw(st.booleans()) else ""
    warm = draw(st.floats(0, 1))
    text = (
        f"training:\n  steps: {steps}\n  local_batch_size: {local}\n  global_batch_size: {batch}\n{seed}"
        f"  max_norm: {draw(st.sampled_from(['1.0', '0.3', '1.0e+10']))}\n"
        f"lr_scheduler:\n  type: {draw(st.sampled_from(['ConstantWarmUpLR', 'LinearWithWarmUpLR']))}\n"
        f"  warmup_ratio: {spell(warm)}\n"
        f"parallelism:\n  tensor_parallel: {tensor}\n{recompute}{enabled}"
        "train_dataset:\n  dataloader:\n    type: BlendedMegatronDatasetDataLoader\n"
        f"    sizes: [{batch * per_epoch}, 0, 0]\n"
        f"model:\n  model_type: qwen3\n  architectures: Qwen3ForCausalLM\n  num_hidden_layers: {layers}\n"
        f"checkpoint:\n  enable_save: {draw(st.booleans())}\n"
        f"  save_path: {draw(st.sampled_from(['./a/checkpoint', 'b']))}\n"
    )
    return text, Options(world=tensor * replicas, expert_mesh=draw(st.sampled_from(list(ExpertMesh))))


@settings(deadline=None, max_examples=60)
@given(files())
def test_the_numbers_of_the_run_survive(drawn: tuple[str, Options]) -> None:
    text, options = drawn
    graph = reversed_(text, options).text
    assert graph is not None
    again = output(graph)
    before = value_of(document(text).root)
    assert isinstance(before, dict)
    training = before["training"]
    assert isinstance(training, dict)
    for key, value in {"seed": 42, **training}.items():
        assert again[f"training.{key}"] == value
    schedule = before["lr_scheduler"]
    assert isinstance(schedule, dict)
    ratio, kept = schedule["warmup_ratio"], again["lr_scheduler.warmup_ratio"]
    assert isinstance(ratio, (int, float))
    assert isinstance(kept, (int, float))
    steps = training["steps"]
    assert isinstance(steps, int)
    assert int(steps * kept) == int(steps * ratio)
    assert again["lr_scheduler.type"] == schedule["type"]
    recompute = before.get("recompute", {})
    assert isinstance(recompute, dict)
    assert again.get("recompute.full_recompute_layer") == recompute.get("full_recompute_layer")
    checkpoint = before["checkpoint"]
    assert isinstance(checkpoint, dict)
    assert again["checkpoint.enable_save"] == checkpoint["enable_save"]
    if checkpoint["enable_save"]:
        assert again["checkpoint.save_path"] == checkpoint["save_path"]
