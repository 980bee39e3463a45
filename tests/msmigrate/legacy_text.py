"""Small graph files with legacy models for tests."""

LLAMA = """\
seed: 3
run_mode: train
use_parallel: True
runner_config:
  epochs: 2
  batch_size: 2
optimizer:
  type: AdamW
  betas: [0.9, 0.95]
  eps: 1.e-8
lr_schedule:
  type: CosineWithWarmUpLR
  learning_rate: 1.e-4
  lr_end: 0
  warmup_ratio: 0.1
train_dataset: &train_dataset
  data_loader:
    type: MindDataset
    dataset_dir: "./tokens.mindrecord"
    shuffle: True
  input_columns: ["input_ids"]
train_dataset_task:
  type: CausalLanguageModelDataset
  dataset_config: *train_dataset
parallel_config:
  data_parallel: 4
model:
  model_config:
    type: LlamaConfig
    batch_size: 1 # of generation
    seq_length: 256
    hidden_size: 128
    num_layers: 3
    num_heads: 8
    n_kv_heads: 2
    vocab_size: 1000 # rows
    intermediate_size: 352
    rms_norm_eps: 1.0e-6
    theta: 500000
    bos_token_id: 1
    pad_token_id: 0
    compute_dtype: "bfloat16"
    layernorm_compute_type: "float32"
    softmax_compute_type: "float32"
    rotary_dtype: "float32"
    param_init_type: "float32"
    use_past: False
    extend_method: "None"
    scaling_factor: 1.0
    use_flash_attention: True
    fine_grain_interleave: 2
    offset: 0
    checkpoint_name_or_path: ""
    top_k: 3
  arch:
    type: LlamaForCausalLM
runner_wrapper:
  type: MFTrainOneStepCell
  scale_sense: 1.0
  use_clip_grad: True
"""

DEEPSEEK = """\
runner_config:
  epochs: 1
  batch_size: 1
optimizer:
  type: AdamW
lr_schedule:
  type: ConstantWarmUpLR
  learning_rate: 2.e-4
  warmup_steps: 0
train_dataset:
  data_loader:
    type: BlendedMegatronDatasetDataLoader
    sizes: [64, 0, 0]
    config:
      split: "1, 0, 0"
      seq_length: 128
      data_path: ['1', "./tokens"]
moe_config:
  expert_num: &expert_num 8
  num_experts_chosen: 2
  shared_expert_num: 1
  moe_intermediate_size: 48
  first_k_dense_replace: 1
  routing_policy: "TopkRouterV2"
  use_gating_sigmoid: True
  balance_via_topk_bias: True
  topk_bias_update_rate: 0.001
  norm_topk_prob: True
  routed_scaling_factor: 1.5
  capacity_factor: 1.5
  use_gmm: True
model:
  model_config:
    type: DeepseekV3Config
    auto_register: deepseek3_config.DeepseekV3Config
    seq_length: 128
    hidden_size: 64
    num_layers: &num_layers 4
    num_heads: 4
    intermediate_size: 160
    vocab_size: 512
    extend_method: "None"
    param_init_type: "float32"
    mtp_depth: &mtp_depth 1
    mtp_loss_factor: 0.3
  arch:
    type: DeepseekV3ForCausalLM
    auto_register: deepseek3.DeepseekV3ForCausalLM
callbacks:
  - type: MFLossMonitor
runner_wrapper:
  type: MFTrainOneStepCell
"""


def edited(text: str, *changes: tuple[str, str]) -> str:
    """A text with pieces replaced; each piece must be there exactly once."""
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text
