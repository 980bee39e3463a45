"""A small graph file for tests, and ways to change it."""

from msmigrate.convert import Conversion, convert
from msmigrate.options import Options
from msmigrate.yaml.document import Document, parse, value_of
from msmigrate.yaml.scalars import Value
from msmigrate.yaml.source import source_from_bytes

GRAPH = """\
seed: 7
use_legacy: False
use_parallel: True
runner_config:
  epochs: 2
  batch_size: 2
  gradient_accumulation_steps: 3
optimizer:
  type: AdamW
  betas: [0.9, 0.98]
  eps: 1.e-8
  weight_decay: 0.05
lr_schedule:
  type: ConstantWarmUpLR
  learning_rate: 4.e-4
  warmup_steps: 5
train_dataset: &data
  data_loader:
    type: BlendedMegatronDatasetDataLoader
    datasets_type: "GPTDataset"
    sizes: [600, 0, 0]
    config:
      split: "1, 0, 0"
      seq_length: 64
      create_attention_mask: False
      eod: 1
      pad: -1
      data_path: ['1', "./tokens"]
    shuffle: False
  drop_remainder: True
train_dataset_task:
  dataset_config: *data
parallel_config:
  data_parallel: 2
  model_parallel: 2
  expert_parallel: 1
  pipeline_stage: 1
  micro_batch_num: 1
recompute_config:
  recompute: True
  mp_comm_recompute: False
model:
  model_config:
    model_type: deepseek_v3
    architectures: [DeepseekV3ForCausalLM]
    vocab_size: 512
    hidden_size: 64
    num_hidden_layers: 6
    num_attention_heads: 4
callbacks:
  - type: MFLossMonitor
  - type: CheckpointMonitor
    prefix: "run"
    save_checkpoint_steps: 50
runner_wrapper:
  type: MFTrainOneStepCell
  use_clip_grad: True
"""


def edited(*changes: tuple[str, str]) -> str:
    """The small graph file with pieces of its text replaced; each piece must be there exactly once."""
    text = GRAPH
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def document(text: str) -> Document:
    """A parsed text."""
    return parse(source_from_bytes("graph.yaml", text.encode()))


def converted(text: str, options: Options | None = None) -> Conversion:
    """The conversion of a text."""
    return convert(document(text), options or Options())


def output(text: str, options: Options | None = None) -> dict[str, Value]:
    """The values of the converted file by dotted path; fails when the conversion is refused."""
    conversion = converted(text, options)
    assert conversion.text is not None, [entry.outcome.why for entry in conversion.refusals]
    return flat(value_of(document(conversion.text).root))


def flat(value: Value, prefix: str = "") -> dict[str, Value]:
    """Values of nested mappings by dotted path."""
    if not isinstance(value, dict) or not value:
        return {prefix: value}
    found: dict[str, Value] = {}
    for key, inner in value.items():
        found.update(flat(inner, f"{prefix}.{key}" if prefix else key))
    return found


def fates(conversion: Conversion) -> dict[str, str]:
    """The fate of each leaf by its graph path."""
    return {entry.graph: entry.outcome.fate.value for entry in conversion.entries if entry.graph is not None}
