"""YAML that moves badly: anchors, aliases, merges, block scalars, dates; and values of the wrong kind."""

import json
import os
import threading
from pathlib import Path

import pytest
import yaml
from graph_text import converted, document, edited, flat, output

from msmigrate.problems import UnreadableError, UserError
from msmigrate.report import report_object
from msmigrate.yaml.document import value_of
from msmigrate.yaml.source import write_whole


def agreed(text: str) -> dict[str, object]:
    """The converted values as PyYAML reads them; the report's values must be the same."""
    conversion = converted(text)
    assert conversion.text is not None, [entry.outcome.why for entry in conversion.refusals]
    found = flat(yaml.safe_load(conversion.text))
    assert found == flat(value_of(document(conversion.text).root))
    reported = {e.outcome.pynative: e.new for e in conversion.entries if e.outcome.writes}
    assert reported == found
    return dict(found)


SIZES = ("    sizes: [600, 0, 0]\n", "    sizes: &s\n      - 600\n      - 0  # none\n      - 0\n")


def test_an_anchor_on_a_block_list() -> None:
    assert agreed(edited(SIZES))["train_dataset.dataloader.sizes"] == [600, 0, 0]
    same_line = edited(("betas: [0.9, 0.98]", "betas: &b\n  - 0.9\n  - 0.98"))
    assert agreed(same_line)["optimizer.betas"] == [0.9, 0.98]


def test_an_alias_to_a_block_list() -> None:
    text = 'top: &l\n  - "1"\n  - "/p"\n' + edited(("data_path: ['1', \"./tokens\"]", "data_path: *l  # there"))
    assert agreed(text)["train_dataset.dataloader.config.data_path"] == ["1", "/p"]


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (">-\n        1, 0, 0\n    # tail", "1, 0, 0"),
        ("|\n        1, 0, 0\n      # tail", "1, 0, 0\n"),
        ("|+\n        1, 0, 0\n\n", "1, 0, 0\n\n\n"),
        ("|2\n         1, 0, 0", " 1, 0, 0\n"),
        ("'1, 0,\n        0'  # two lines", "1, 0, 0"),
        ('"1, 0, \\\n        0"', "1, 0, 0"),
        ("1, 0,\n        0", "1, 0, 0"),
    ],
)
def test_scalars_of_several_lines(scalar: str, value: str) -> None:
    text = edited(('split: "1, 0, 0"', f"split: {scalar}"))
    assert agreed(text)["train_dataset.dataloader.config.split"] == value
    shown = converted(text).text
    assert shown is not None
    assert shown.count("# tail") <= 1


def test_a_block_scalar_inside_a_list() -> None:
    text = edited(
        ("data_path: ['1', \"./tokens\"]", "data_path:\n        - '1'\n        - |\n          /p\n    # tail")
    )
    assert agreed(text)["train_dataset.dataloader.config.data_path"] == ["1", "/p\n"]


def test_an_alias_to_a_section_that_matters() -> None:
    loader = edited()[edited().index("  data_loader:\n") : edited().index("  drop_remainder")]
    moved = "loader: &dl\n" + loader.replace("  data_loader:\n", "").replace("\n    ", "\n  ").replace(
        "    type: Bl", "  type: Bl", 1
    )
    text = moved + edited((loader, "  data_loader: *dl\n"))
    assert agreed(text)["train_dataset.dataloader.sizes"] == [600, 0, 0]


def test_an_alias_to_a_section_that_goes() -> None:
    text = "shared: &m {a: 1}\n" + edited() + "metric: *m\nswap_config: *m\n"
    found = {entry.graph: entry.outcome.fate.value for entry in converted(text).entries}
    assert (found["metric"], found["swap_config"]) == ("dropped", "dropped")


def test_the_first_of_several_merges_wins() -> None:
    text = edited(("  eps: 1.e-8\n", "  <<: [{eps: 3.e-9}, {eps: 4.e-9, weight_decay: 9.0}]\n"))
    found = agreed(text)
    assert (found["optimizer.eps"], found["optimizer.weight_decay"]) == (3e-9, 0.05)
    with pytest.raises(UnreadableError, match="merge key"):
        converted(edited(("  eps: 1.e-8\n", "  <<: 3\n")))


def test_dates_are_quoted_and_broken_ones_refused() -> None:
    assert agreed(edited(('prefix: "run"', "prefix: 2026-12-01")))["checkpoint.prefix"] == "2026-12-01"
    with pytest.raises(UnreadableError, match="date"):
        converted(edited(('prefix: "run"', "prefix: 2026-13-41")))


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029"])
def test_hidden_line_ends_are_refused(character: str) -> None:
    with pytest.raises(UnreadableError, match=f"U\\+{ord(character):04X}"):
        converted(edited(("seed: 7", f"seed: 7 # a{character}b: 1")))


@pytest.mark.parametrize(
    "change",
    [
        (
            "optimizer:\n  type: AdamW\n  betas: [0.9, 0.98]\n  eps: 1.e-8\n  weight_decay: 0.05\n",
            "optimizer: [1, 2]\n",
        ),
        ("runner_config:\n  epochs: 2\n  batch_size: 2\n  gradient_accumulation_steps: 3\n", "runner_config: 5\n"),
        ("callbacks:\n  - type: MFLossMonitor\n", "callbacks: [CheckpointMonitor]\nother:\n  - type: MFLossMonitor\n"),
        ("use_clip_grad: True", 'use_clip_grad: "True"'),
        ("use_clip_grad: True", "use_clip_grad: True\n  max_grad_norm: [0.5]"),
        ("recompute: True", 'recompute: "True"'),
        ("recompute: True", "recompute: 1"),
        ("epochs: 2", "epochs: [2]"),
        ("epochs: 2", 'epochs: "2"'),
        ("epochs: 2", "epochs: 2\n  stop_step: '5'"),
        ("use_legacy: False", 'use_legacy: "False"'),
        ("warmup_steps: 5", 'warmup_ratio: "0.1"'),
    ],
)
def test_values_of_the_wrong_kind_are_errors_with_a_place(change: tuple[str, str]) -> None:
    with pytest.raises(UserError, match=r"graph\.yaml"):
        converted(edited(change))


@pytest.mark.parametrize(
    "change",
    [
        ("num_attention_heads: 4", "num_attention_heads: {a: 1}"),
        ("num_attention_heads: 4", "num_attention_heads: [4]"),
        ("seed: 7", "seed: -1"),
        ("betas: [0.9, 0.98]", "betas: [0.9]"),
        ("eps: 1.e-8", "eps: .inf"),
        ("use_legacy: False", "pretrained_model_dir: /nowhere/model"),
        ("use_legacy: False", "ignore_data_skip: True"),
        ("drop_remainder: True", "drop_remainder: True\n  eod_reset: True"),
        ("recompute: True", "recompute: [1, 2, 3]"),
        ("use_legacy: False", "use_legacy: True"),
    ],
)
def test_values_that_no_reader_takes_are_refused(change: tuple[str, str]) -> None:
    conversion = converted(edited(change))
    assert conversion.text is None
    json.dumps(report_object(conversion), allow_nan=False)


def test_numbers_without_a_point_count_as_numbers() -> None:
    text = edited(
        ("use_clip_grad: True", "use_clip_grad: True\n  max_grad_norm: 5e-1"), ("warmup_steps: 5", "warmup_ratio: 5e-2")
    )
    found = agreed(text)
    assert (found["training.max_norm"], found["lr_scheduler.warmup_ratio"]) == (0.5, 0.05)


def test_an_empty_section_counts_as_absent() -> None:
    text = edited(("runner_wrapper:\n  type: MFTrainOneStepCell\n  use_clip_grad: True\n", "runner_wrapper:\n"))
    assert output(text)["training.max_norm"] == 1.0
    assert any("runner_wrapper" in note for note in converted(text).notes)
    assert output(edited(("  eps: 1.e-8", "  eps:"), ("seed: 7", "seed:")))["training.seed"] == 1


def test_comments_stay_with_values_that_only_change_their_form() -> None:
    text = converted(
        edited(
            (
                "    architectures: [DeepseekV3ForCausalLM]\n",
                "    # 类名\n    architectures: [DeepseekV3ForCausalLM]  # one\n",
            ),
            ("  expert_parallel: 1\n", "  use_seq_parallel: True  # sp\n"),
        )
    ).text
    assert text is not None
    assert "  # 类名\n  architectures: DeepseekV3ForCausalLM  # one\n" in text
    assert "  sequence_parallel: True  # sp\n" in text


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(str(pipe), b"text")
    reader.join()
    assert read == [b"text"]
    assert pipe.is_fifo()


def test_links_stay_links_and_loops_are_refused(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_whole(str(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UnreadableError, match="cannot be written"):
        write_whole(str(tmp_path / "loop"), b"new")
    assert (tmp_path / "loop").is_symlink()
