"""A small pynative file for tests, and ways to turn it back into a graph file."""

from graph_text import document, flat

from msmigrate.convert import Conversion
from msmigrate.options import Options
from msmigrate.reverse import reverse
from msmigrate.yaml.document import value_of
from msmigrate.yaml.scalars import Value

PYNATIVE = """\
checkpoint:
  enable_save: True
  save_path: "./out/checkpoint"
  save_max: 3
  prefix: "run"  # of the files
training:
  steps: 100
  local_batch_size: 2
  global_batch_size: 12
  deterministic: True
optimizer:
  type: AdamW
  eps: 1.e-8
lr_scheduler:
  type: CosineWithWarmUpLR
  learning_rate: 4.e-4
  warmup_ratio: 0.05
parallelism:
  data_parallel_shard: -1
  tensor_parallel: 2
recompute:
  mode: full
  full_recompute_layer: [0-5]
train_dataset:
  dataloader:
    type: BlendedMegatronDatasetDataLoader
    sizes: [600, 0, 0]
    config:
      seq_length: 64
      data_path: ['1', "./tokens"]
  drop_remainder: True
model:
  model_type: deepseek_v3
  architectures: DeepseekV3ForCausalLM
  hidden_size: 64
  num_hidden_layers: 6
"""


def changed(*changes: tuple[str, str]) -> str:
    """The small pynative file with pieces of its text replaced; each piece must be there exactly once."""
    text = PYNATIVE
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def reversed_(text: str, options: Options | None = None) -> Conversion:
    """The conversion of a text to a graph file, on four devices unless told otherwise."""
    return reverse(document(text), options or Options(world=4))


def graph_of(text: str, options: Options | None = None) -> dict[str, Value]:
    """The values of the graph file by dotted path; fails when the conversion is refused."""
    conversion = reversed_(text, options)
    assert conversion.text is not None, [entry.outcome.why for entry in conversion.refusals]
    return flat(value_of(document(conversion.text).root))


def reasons(text: str, options: Options | None = None) -> list[str]:
    """Why a text is refused, with the advice."""
    conversion = reversed_(text, options)
    assert conversion.text is None
    return [f"{entry.outcome.why}; {entry.outcome.help}" for entry in conversion.refusals]
