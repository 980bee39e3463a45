"""The text of the output: the author's own spellings, comments, layout and line ends."""

import pytest
from graph_text import GRAPH, converted, document, edited

from msmigrate.convert import AlreadyPynativeError
from msmigrate.options import Options


def text_of(graph: str) -> str:
    text = converted(graph).text
    assert text is not None
    return text


def test_spellings_survive() -> None:
    text = text_of(edited(('"./tokens"', "'./语料 text'")))
    for line in (
        "  eps: 1.e-8",
        "  betas: [0.9, 0.98]",
        "      data_path: ['1', './语料 text']",
        '      split: "1, 0, 0"',
    ):
        assert f"\n{line}\n" in text
    assert "create_attention_mask: False" in text


def test_comments_go_with_their_keys() -> None:
    graph = (
        "# 文件头\n# second line\n\n"
        + edited(
            ("runner_config:\n", "# 训练 section\nrunner_config:\n"),
            ("  epochs: 2\n", "  epochs: 2  # epochs go\n"),
            ("  batch_size: 2\n", "  # above 批大小\n  batch_size: 2  # per rank\n"),
            ("  type: AdamW\n", "  type: AdamW    # gap kept\n"),
            ("seed: 7\n", "# the seed\nseed: 7\n"),
            ("use_legacy: False\n", "# goes with a dropped key\nuse_legacy: False\n"),
        )
        + "# the end\n"
    )
    text = text_of(graph)
    assert text.startswith("# 文件头\n# second line\n")
    assert "  # the seed\n  seed: 7\n" in text
    assert "  # above 批大小\n  local_batch_size: 2  # per rank\n" in text
    assert "  type: AdamW    # gap kept\n" in text
    assert "# 训练 section\ntraining:" in text
    assert "  steps: 100  # epochs go\n" in text
    assert "dropped key" not in text
    assert text.endswith("# the end\n")


def test_a_hash_inside_text_is_no_comment() -> None:
    text = text_of(edited(('prefix: "run"', 'prefix: "a # b"  # real')))
    assert '  prefix: "a # b"  # real\n' in text


def test_block_lists_keep_their_lines_and_comments() -> None:
    graph = edited(
        (
            "    sizes: [600, 0, 0]\n",
            "    sizes:\n      - 600 # train\n      # between\n      - 0\n      - 0   # test\n",
        )
    )
    assert "    sizes:\n      - 600 # train\n      # between\n      - 0\n      - 0   # test\n" in text_of(graph)
    dashes_at_key = graph.replace("      - ", "    - ").replace("      # between", "    # between")
    assert "    sizes:\n    - 600 # train\n    # between\n    - 0\n    - 0   # test\n" in text_of(dashes_at_key)


def test_flow_lists_over_several_lines() -> None:
    graph = edited(("betas: [0.9, 0.98]", "betas: [\n    0.9,  # first\n    0.98\n  ]  # two"))
    assert "  betas: [\n    0.9,  # first\n    0.98\n  ]  # two\n" in text_of(graph)


def test_anchors_go_and_aliases_are_written_out() -> None:
    graph = edited(
        ("    vocab_size: 512\n", "    vocab_size: &v 512  # tokens\n    max_position_embeddings: *v\n"),
        ("betas: [0.9, 0.98]", "betas: [0.9, *b]"), ("seed: 7", "seed: &b 0"),
    )  # fmt: skip
    text = text_of(graph)
    assert "  vocab_size: 512  # tokens\n  max_position_embeddings: 512\n" in text
    assert "betas: [0.9, 0.0]" in text
    assert "&" not in text
    assert "*" not in text


def test_unsafe_numbers_are_respelled_and_keep_their_comment() -> None:
    text = text_of(edited(("eps: 1.e-8", "eps: 1e-8  # tiny"), ("learning_rate: 4.e-4", "learning_rate: 4E-4")))
    assert "  eps: 1.0e-08  # tiny\n" in text
    assert "  learning_rate: 0.0004\n" in text


def test_the_authors_indentation_is_kept() -> None:
    body = GRAPH[: GRAPH.index("callbacks:")]
    wide = "\n".join(" " * (2 * (len(line) - len(line.lstrip()))) + line.lstrip() for line in body.split("\n"))
    text = text_of(wide)
    assert "\ntraining:\n    seed: 7\n" in "\n" + text
    assert "\n            seq_length: 64\n" in text


def test_flow_sections_become_block_sections() -> None:
    graph = edited(
        ("optimizer:\n  type: AdamW\n  betas: [0.9, 0.98]\n  eps: 1.e-8\n  weight_decay: 0.05\n",
         "optimizer: {type: AdamW, betas: [0.9, 0.98], eps: 1.e-8, weight_decay: 0.05} # all\n"),
    )  # fmt: skip
    assert "  type: AdamW\n  betas: [0.9, 0.98]\n  eps: 1.e-8\n  weight_decay: 0.05\n" in text_of(graph)


def test_line_ends_and_no_final_newline() -> None:
    assert text_of(GRAPH.rstrip("\n")) == text_of(GRAPH)
    windows = document(GRAPH.replace("\n", "\r\n")).source
    assert windows.newline == "\r\n"
    assert windows.encode("a\nb\n") == b"a\r\nb\r\n"


def test_the_same_input_gives_the_same_bytes() -> None:
    assert text_of(GRAPH) == text_of(GRAPH)


def test_a_converted_file_is_recognised() -> None:
    with pytest.raises(AlreadyPynativeError, match="already"):
        converted(text_of(GRAPH))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model:\n  arch: {type: X}\n  model_config: {type: LlamaConfig}\n", "legacy"),
        ("training_args: {a: 1}\nx: 2\n", "LLMTrainer"),
        ("base_config: [a.yaml]\n", "base_config"),
    ],
)
def test_other_families_are_refused_by_name(text: str, words: str) -> None:
    conversion = converted(text, Options(allow_lossy=True, samples=5))
    assert conversion.text is None
    assert any(words in entry.outcome.why for entry in conversion.refusals)


def test_comments_of_computed_keys_stay_with_what_they_turn_into() -> None:
    text = text_of(
        edited(
            ("  warmup_steps: 5\n", "  # warm\n  warmup_steps: 5  # five\n"),
            ("  data_parallel: 2\n", "  data_parallel: 2 # replicas\n"),
            ("  recompute: True\n", "  # memory\n  recompute: True # all\n"),
            ("[DeepseekV3ForCausalLM]\n", "[DeepseekV3ForCausalLM] # class\n"),
        )
    )
    assert "  # warm\n  warmup_ratio: 0.05  # five\n" in text
    assert "  data_parallel_shard: -1 # replicas\n" in text
    assert "  # memory\n  mode: full # all\n" in text
    assert "  architectures: DeepseekV3ForCausalLM # class\n" in text


@pytest.mark.parametrize("switch", ["", " # clip"])
def test_of_several_keys_the_first_with_comments_gives_them(switch: str) -> None:
    wrapper = f"  use_clip_grad: True{switch}\n  # norm\n  max_grad_norm: 0.7 # seven\n"
    text = text_of(edited(("  use_clip_grad: True\n", wrapper)))
    assert ("  max_norm: 0.7 # clip\n" if switch else "  # norm\n  max_norm: 0.7 # seven\n") in text
    assert ("# norm" in text) is (switch == "")


def test_comments_above_the_first_item_of_a_list() -> None:
    lists = "  betas:  # two\n    # first\n    - 0.9\n    # second\n    - 0.98  # b\n"
    assert lists in text_of(edited(("  betas: [0.9, 0.98]\n", lists)))


def test_comments_at_the_end_of_a_section_stay_at_the_end() -> None:
    text = text_of(
        edited(
            ("  gradient_accumulation_steps: 3\n", "  gradient_accumulation_steps: 3\n  # run ends\n\n"),
            ("    num_attention_heads: 4\n", "    num_attention_heads: 4\n    # heads end\n  # model ends\n"),
            ("callbacks:\n", "# of callbacks\ncallbacks:\n"),
        )
    )
    training = text[text.index("training:") : text.index("\noptimizer:")]
    assert training.rstrip().endswith("\n  # run ends")
    model = text[text.index("\nmodel:") : text.index("\ncheckpoint:")]
    assert model.rstrip().endswith("\n  # heads end\n  # model ends")
    assert text.count("# run ends") == text.count("# heads end") == text.count("# model ends") == 1
