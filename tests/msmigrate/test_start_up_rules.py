"""Start-up rules: each with a file that obeys it and one that breaks it, and how convert and lint use them."""

import pytest
from graph_text import converted, edited

from msmigrate.findings import Finding, Severity
from msmigrate.lint import lint
from msmigrate.mapping.outcome import Fate
from msmigrate.options import ExpertMesh, Options, Target
from msmigrate.pynative.start_up import RULES, Setting
from msmigrate.yaml.source import source_from_bytes

GOOD = """\
checkpoint:
  save_path: ./out
training:
  steps: 10
  local_batch_size: 1
  global_batch_size: 8
lr_scheduler:
  type: CosineWithWarmUpLR
  learning_rate: 1.e-3
parallelism:
  tensor_parallel: 2
  sequence_parallel: True
  expert_parallel: 1
recompute:
  mode: full
  full_recompute_layer: [0-2, 4]
recompute_comm:
  enable: True
  select_module:
    '.*\\.allgather': [0-1]
train_dataset:
  dataloader:
    type: BlendedMegatronDatasetDataLoader
    sizes: [10, 0, 0]
model:
  model_type: deepseek_v3
  architectures: DeepseekV3ForCausalLM
  num_hidden_layers: 4
  num_nextn_predict_layers: 1
  num_attention_heads: 4
  first_k_dense_replace: 1
  n_routed_experts: 8
  num_experts_per_tok: 2
  n_group: 4
  topk_group: 2
  moe_router_load_balancing_type: seq_aux_loss
  moe_aux_loss_coeff: 0.01
  hidden_dropout: 0.0
profiler:
  start_step: 1
  end_step: 2
"""

V20, V21 = Target.V2_0, Target.V2_1
LR = "type: CosineWithWarmUpLR"
TP = "tensor_parallel: 2\n  sequence_parallel: True\n  expert_parallel: 1"


def findings(text: str, target: Target = V20, world: int | None = 8, mesh: str = "product") -> list[Finding]:
    return lint(source_from_bytes("p.yaml", text.encode()), Setting(target, world, ExpertMesh(mesh)))


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


@pytest.mark.parametrize("target", list(Target))
@pytest.mark.parametrize("mesh", list(ExpertMesh))
@pytest.mark.parametrize("world", [None, 2, 8, 16])
def test_a_good_file_breaks_no_rule(target: Target, mesh: ExpertMesh, world: int | None) -> None:
    assert [str(finding) for finding in findings(GOOD, target, world, mesh)] == []


BROKEN = (
    ("P020", "profiler:", "monitor:\n  tensorboard:\n    output_dir: x\nprofiler:", V20, "write `tensorboard_dir`"),
    ("P020", "profiler:", "monitor:\n  tensorboard:\n    tensorboard_dir: x\nprofiler:", V21, "write `output_dir`"),
    ("P020", "steps: 10", "steps: 10\n  use_skip_step_on_nan: True", V20, "MindFormers 2.0 stops at it"),
    ("P020", "profiler:", "run_mode: train\nprofiler:", V20, "MindFormers 2.0 ignores it in silence"),
    ("P021", "profiler:", "swap:\nprofiler:", V20, "`swap` is empty"),
    ("P021", "profiler:", "callbacks:\nprofiler:", V20, "`callbacks` is empty"),
    ("P022", "profiler:", "callbacks:\n  - type: A\n  - a: 1\nprofiler:", V20, "item 1 of `callbacks` has no `type`"),
    ("P023", TP, TP + "\n  moe_token_dispatcher_type: alltoall_deredundancy", V21, "npu_nums_per_device 8; it is 1"),
    ("P024", "  sequence_parallel: True\n", "", V21, "tensor_parallel 2 without sequence_parallel"),
    ("P025", "start_step: 1", "start_step: 3", V20, "start_step 3 is behind profiler.end_step 2"),
    ("P026", "save_path: ./out", "save_trainable_only: True", V21, "give checkpoint.base_load_path"),
    ("P027", "profiler:", "lora_config:\n  lora_rank: 4\nprofiler:", V21, "target_modules` is empty"),
    ("P027", "profiler:", "lora_config:\n  target_modules: '('\nprofiler:", V21, "no regular expression"),
    ("P030", "  full_recompute_layer: [0-2, 4]\n", "", V20, "full and `recompute.full_recompute_layer` is missing"),
    ("P030", "mode: full\n  full_recompute_layer: [0-2, 4]", "mode: select", V21, "`recompute.select_module` is"),
    ("P030", "  select_module:\n    '.*\\.allgather': [0-1]\n", "", V20, "enable` is true and"),
    ("P031", "[0-2, 4]", "[0-2, 4-5]", V20, "names layer 5; the last one is 4 (num_hidden_layers 4 and 1 of"),
    ("P031", "[0-1]", "[9]", V20, "names layer 9; the last one is 4"),
    ("P032", "'.*\\.allgather'", "'.*\\\\.allgather'", V20, "write '.*\\.allgather'"),
    ("P032", "'.*\\.allgather'", "'('", V20, "no regular expression"),
    ("P032", "'.*\\.allgather'", "' '", V20, "an empty name"),
    ("P033", "mode: full", "exclude_op: {'.*': [0]}\n  mode: full", V20, "2.0 expects a list of operator names"),
    ("P033", "mode: full", "exclude_op: [matmul]\n  mode: full", V21, "2.1 expects a mapping"),
    ("P040", LR, "type: ConstantWarmUpLR", V20, "`lr_scheduler.warmup_steps`; both are missing"),
    ("P040", LR, LR + "\n  warmup_steps: null", V20, "both are missing"),
    ("P040", LR, "type: WarmUpStableDecayLR\n  warmup_steps: 1", V20, "decay_start_steps`; both are missing"),
    ("P040", LR + "\n  learning_rate: 1.e-3", "type: CosineAnnealingLR\n  base_lr: 0.1", V20, "t_max`, which is"),
    ("P041", LR, "type: LinearWithWarmUpLR\n  warmup_ratio: 0.1\n  lr_end: 0.0", V20, "`lr_scheduler.lr_end` has no"),
    ("P041", LR, "type: CosineAnnealingLR\n  base_lr: 0.1\n  t_max: 3", V20, "`lr_scheduler.learning_rate` has no"),
    ("P042", LR, "type: PolynomialWithWarmUpLR\n  warmup_ratio: 0\n  lr_end: 1.e-3", V20, "0.001 is not above lr_end"),
    ("P043", LR, "type: WarmUpStableDecayLR\n  warmup_ratio: 0\n  decay_start_steps: 5", V20, "it computes 0 / 0"),
    ("P044", LR, LR + "\n  warmup_ratio: 0.25\n  warmup_steps: 5", V20, "0.25 wins and gives 2 steps of 10"),
    ("P045", "learning_rate: 1.e-3", "learning_rate: 0", V20, "nothing is learnt"),
    ("P045", LR + "\n  learning_rate: 1.e-3", "type: CosineAnnealingLR\n  base_lr: 0\n  t_max: 5", V20, "lr` is 0"),
    ("P050", TP, "tensor_parallel: 1\n  expert_parallel: 3", V20, "by the manual's product"),
    ("P051", TP, TP + "\n  data_parallel_shard: 0", V20, "write -1"),
    ("P052", TP, TP + "\n  data_parallel_shard: 3", V20, "divide data_parallel 4 (8 ranks / tensor_parallel 2)"),
    ("P054", "global_batch_size: 8", "global_batch_size: 2", V20, "2 is below local_batch_size 1 × data_parallel 4"),
    ("P054", "global_batch_size: 8", "global_batch_size: 10", V20, "trains 8 samples a step and says nothing"),
    ("P054", "global_batch_size: 8", "global_batch_size: 10", V21, "nearest legal values: 8 and 12"),
    ("P056", "expert_parallel: 1", "expert_parallel: 4", V20, "data_parallel 4 and 2 accumulation steps by the nested"),
    ("P060", "num_hidden_layers: 4", "num_layers: 4", V20, "`model.num_layers` is 4 and the readers take num_hidden"),
    ("P060", "num_attention_heads: 4", "num_heads: 4", V20, "num_heads` is ignored; the readers take num_attention"),
    ("P061", "hidden_dropout: 0.0", "scaling_factor: 4", V20, "`rotary_scaling_factor`, which is 40.0"),
    ("P061", "hidden_dropout: 0.0", "scoring_func: softmax", V20, "`moe_router_score_function`, which is sigmoid"),
    ("P028", "hidden_dropout: 0.0", "hidden_dropout: 0", V20, "write 0.0"),
    ("P028", "profiler:", "optimizer:\n  betas: [1, 0]\nprofiler:", V20, "write [1.0, 0.0]"),
    ("P028", "profiler:", "optimizer:\n  weight_decay: 0\nprofiler:", V20, "write 0.0"),
    ("P062", "hidden_dropout: 0.0", "attention_dropout: 1.0", V20, "values below 1"),
    ("P063", "hidden_dropout: 0.0", "bias_swiglu_fusion: True", V20, "hidden_act is silu"),
    ("P064", "num_attention_heads: 4", "num_attention_heads: 5", V20, "legal values: 1, 5"),
    ("P065", "topk_group: 2", "topk_group: 4", V20, "topk_group 4 does not divide num_experts_per_tok 2"),
    ("P065", "n_group: 4", "n_group: 3", V20, "n_group 3 does not divide n_routed_experts 8"),
    ("P065", "n_group: 4", "n_group: 8", V20, "leaves 1 of n_routed_experts 8 in a group"),
    ("P065", "n_group: 4", "n_group: 1", V20, "topk_group 2 is above n_group 1"),
    ("P065", "n_group: 4", "n_group: 0", V20, "there are no groups"),
    ("P065", "num_experts_per_tok: 2", "num_experts_per_tok: 6", V20, "2 × 2 experts of a group are below"),
    ("P066", "seq_aux_loss", "gbs_aux_loss", V20, "is gbs_aux_loss; with moe_aux_loss_coeff 0.01 the router stops"),
    ("P066", "  moe_router_load_balancing_type: seq_aux_loss\n", "", V20, "is missing, which means sub_seq_aux_loss"),
    ("P067", "hidden_dropout: 0.0", "moe_router_score_function: softmax", V20, "true (its default)"),
    ("P068", "num_experts_per_tok: 2\n  n_group: 4\n  topk_group: 2",
     "num_experts_per_tok: 1\n  topk_group: 0\n  moe_router_enable_expert_bias: False\n"
     "  moe_router_score_function: softmax", V20, "no gradient"),
    ("P069", "first_k_dense_replace: 1", "first_k_dense_replace: 5", V20, "5 is above num_hidden_layers 4"),
    ("P069", "first_k_dense_replace: 1", "first_k_dense_replace: 1\n  moe_layer_freq: 2", V20, "exclude each other"),
    ("P070", "hidden_dropout: 0.0", "add_bias_linear: True", V20, "model with experts"),
    ("P080", "steps: 10", "steps: 10\n  max_norm: 0", V20, "every gradient is multiplied by 0"),
    ("P081", "hidden_dropout: 0.0", "seq_length: 32", V20, "seq_length` is 4096, its default"),
)  # fmt: skip


def test_a_key_of_msrts_own_is_worth_a_note() -> None:
    (found,) = findings(changed("steps: 10", "steps: 10\n  loss_normalization: global_tokens"))
    assert (found.code, found.severity, found.key) == ("P020", Severity.NOTE, "training.loss_normalization")
    assert "a key of msrt's own; MindFormers 2.0 stops at it" in found.message


@pytest.mark.parametrize(("code", "old", "new", "target", "words"), BROKEN, ids=lambda part: str(part)[:24])
def test_a_bad_file_breaks_exactly_its_rule(code: str, old: str, new: str, target: Target, words: str) -> None:
    found = [finding for finding in findings(changed(old, new), target) if finding.severity is not Severity.NOTE]
    if code == "P056":
        found = findings(changed(old, new), target)
    assert {finding.code for finding in found} == {code}, [str(finding) for finding in found]
    assert any(words in str(finding) for finding in found), [str(finding) for finding in found]
    assert all(finding.span is not None for finding in found)


def test_every_rule_has_a_bad_file() -> None:
    assert {rule.code for rule in RULES} - {code for code, *_ in BROKEN} == {"P053", "P055"}
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)


def test_in_the_nested_mesh_experts_stay_in_one_replica() -> None:
    text = changed(TP, TP.replace("expert_parallel: 1", "expert_parallel: 8\n  data_parallel_shard: 2"))
    found = [finding for finding in findings(text, mesh="nested") if finding.severity is Severity.ERROR]
    assert [finding.code for finding in found] == ["P053"]
    assert "data_parallel_shard 2 × context_parallel 1 × tensor_parallel 2 = 4" in found[0].message
    fitting = findings(text.replace("expert_parallel: 8", "expert_parallel: 4"), mesh="nested")
    assert [finding.severity for finding in fitting] == [Severity.NOTE]


def test_without_ranks_the_batches_alone_are_compared() -> None:
    text = changed("local_batch_size: 1", "local_batch_size: 3")
    assert [finding.code for finding in findings(text, world=None)] == ["P055"]
    assert "nearest legal values: 6 and 9" in str(findings(text, V21, world=None)[0])


def test_a_rule_on_the_other_release_alone_does_not_hold() -> None:
    without = changed("  sequence_parallel: True\n", "")
    assert (findings(without, V20), len(findings(without, V21))) == ([], 1)


def test_what_follows_from_a_wrong_value_is_not_said() -> None:
    text = changed("num_hidden_layers: 4", "num_hidden_layers: '4'")
    assert [finding.code for finding in findings(text)] == ["P002"]
    assert [finding.code for finding in findings(changed("steps: 10", "steps: x"))] == ["P002"]


def test_findings_stand_at_the_key_to_change() -> None:
    found = findings(changed("global_batch_size: 8", "global_batch_size: 2"))
    assert [(finding.key, finding.span.start.line, finding.span.start.column) for finding in found if finding.span] == [
        ("training.global_batch_size", 6, 3)
    ]
    named = findings(changed("num_hidden_layers: 4", "num_layers: 4"))[0]
    assert named.span is not None
    assert (named.span.start.line, named.span.start.column) == (28, 3)


def test_convert_refuses_what_the_reader_would_stop_at() -> None:
    conversion = converted(edited(), Options(target=V21, overrides={"training.global_batch_size": 3}))
    assert conversion.text is None
    assert [entry.outcome.help for entry in conversion.refusals] == ["nearest legal values: 2 and 4"]
    assert conversion.refusals[0].span is not None
    counted = [entry for entry in conversion.entries if entry.graph is not None and entry.outcome.fate is Fate.REFUSED]
    assert counted == []


def test_convert_notes_what_another_number_of_ranks_would_mend() -> None:
    stops = converted(edited(), Options(target=V21, overrides={"training.global_batch_size": 6}))
    assert stops.text is not None
    assert any(note.endswith("nearest legal values: 4 and 8") for note in stops.notes)
    floored = converted(edited(), Options(overrides={"training.global_batch_size": 6}))
    assert any("MindFormers 2.0 trains 4 samples a step" in note for note in floored.notes)


def test_convert_names_both_readings() -> None:
    text = edited(("expert_parallel: 1", "expert_parallel: 4"))
    product = converted(text)
    assert product.text is not None
    assert any("tensor_parallel 2 × expert_parallel 4 = 8, by the manual's product" in note for note in product.notes)
    assert any("data_parallel 2 and 3 accumulation steps by the nested mesh" in note for note in product.notes)
    assert converted(text, Options(expert_mesh=ExpertMesh.NESTED)).notes == ()
    batch = {"training.global_batch_size": 10}
    legal_by_product = edited(("expert_parallel: 1", "expert_parallel: 2"), ("batch_size: 2", "batch_size: 5"))
    carried = converted(legal_by_product, Options(target=V21, overrides=batch | {"training.local_batch_size": 10}))
    assert carried.text is not None
    assert any(note.startswith("MindFormers 2.1 stops on 4 ranks: global_batch_size 10") for note in carried.notes)


def test_the_manuals_own_file_is_not_for_the_readers() -> None:
    conversion = converted(edited(), Options(target=V21, manual_only=True))
    assert conversion.text is not None
    assert any("without sequence_parallel" in note for note in conversion.notes)
