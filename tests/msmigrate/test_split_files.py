"""Files that include others by base_config: merged as one, with each key's own file and line."""

from pathlib import Path

import pytest
from graph_text import GRAPH, document, flat
from typer.testing import CliRunner

from msmigrate.app import app
from msmigrate.convert import Conversion, convert
from msmigrate.options import Options
from msmigrate.problems import Exit, UnreadableError
from msmigrate.report import report_object, totals
from msmigrate.yaml.document import parse, value_of
from msmigrate.yaml.nodes import leaves
from msmigrate.yaml.parts import with_parts
from msmigrate.yaml.source import read_source

RUNNER = "runner_config:\n  # of the part\n  epochs: 7\n  batch_size: 2 # rows\n  gradient_accumulation_steps: 3\n"
OWN = "# the run\n\nbase_config: ['./parts/runner.yaml', 'parts/rest.yaml']\nrunner_config:\n  epochs: 2 # own\n"


def rest() -> str:
    """The small graph file without its runner_config."""
    start = GRAPH.index("runner_config:")
    end = GRAPH.index("optimizer:")
    return GRAPH[:start] + GRAPH[end:]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file and its two parts."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "runner.yaml").write_text(RUNNER)
    (tmp_path / "parts" / "rest.yaml").write_text(rest().rstrip("\n"))
    (tmp_path / "run.yaml").write_text(OWN)
    return tmp_path


def read(path: Path) -> Conversion:
    return convert(with_parts(parse(read_source(str(path))), str(path)), Options())


def why(path: Path) -> str:
    """The one reason for which a file is refused."""
    conversion = read(path)
    assert conversion.text is None
    assert {entry.outcome.fate.value for entry in conversion.entries} == {"refused"}
    (entry,) = conversion.refusals
    return entry.outcome.why


def test_the_merged_file_is_converted(folder: Path) -> None:
    conversion = read(folder / "run.yaml")
    assert conversion.family.value == "split"
    assert conversion.text is not None
    (folder / "whole.yaml").write_text(GRAPH)
    whole = read(folder / "whole.yaml").text
    assert whole is not None
    assert flat(value_of(document(conversion.text).root)) == flat(value_of(document(whole).root))


def test_texts_and_comments_come_from_the_part_of_the_key(folder: Path) -> None:
    text = read(folder / "run.yaml").text
    assert text is not None
    assert text.startswith("# the run\n")
    assert "local_batch_size: 2 # rows" in text
    assert "data_path: ['1', \"./tokens\"]" in text
    assert "learning_rate: 4.e-4" in text
    assert read(folder / "run.yaml").text == text


def test_entries_name_the_file_and_the_line_of_their_key(folder: Path) -> None:
    conversion = read(folder / "run.yaml")
    assert totals(conversion)["leaves_read"] == sum(1 for _ in leaves(conversion.document.root))
    entries = report_object(conversion)["entries"]
    assert isinstance(entries, list)
    found = {entry["graph"]: entry for entry in entries if entry["graph"]}
    assert found["runner_config.epochs"]["span"] == {"line": 5, "column": 3, "end_line": 5, "end_column": 12}
    assert "in " not in found["runner_config.epochs"]["why"]
    part = found["runner_config.batch_size"]
    assert (part["span"]["line"], part["span"]["column"]) == (4, 3)
    assert part["why"].endswith(f"in {folder}/parts/runner.yaml")
    assert found["seed"]["span"]["line"] == 1
    assert found["base_config"]["fate"] == "dropped"


def test_later_sections_replace_earlier_ones_whole(folder: Path) -> None:
    (folder / "parts" / "rest.yaml").write_text(rest() + "runner_config:\n  batch_size: 5\n")
    text = read(folder / "run.yaml").text
    assert text is not None
    values = flat(value_of(document(text).root))
    assert values["training.local_batch_size"] == 5
    assert values["training.global_batch_size"] == 10  # 5 × data_parallel 2: the part's accumulation is gone


def test_parts_may_include_parts_and_paths_start_from_the_including_file(folder: Path) -> None:
    (folder / "parts" / "deep").mkdir()
    (folder / "parts" / "deep" / "runner.yaml").write_text(RUNNER)
    (folder / "parts" / "runner.yaml").write_text("base_config: deep/runner.yaml\nrunner_config:\n  batch_size: 4\n")
    text = read(folder / "run.yaml").text
    assert text is not None
    assert flat(value_of(document(text).root))["training.local_batch_size"] == 4


def test_a_refusal_in_a_part_has_its_place(folder: Path) -> None:
    (folder / "parts" / "rest.yaml").write_text(rest().replace("type: AdamW", "type: Own"))
    result = CliRunner().invoke(app, ["convert", str(folder / "run.yaml")])
    assert result.exit_code == 1
    line = rest().split("\n").index("  type: AdamW") + 1
    assert f"{folder}/parts/rest.yaml:{line}:3: refused: `optimizer.type`" in result.stderr


def test_a_part_that_is_missing_refuses_the_file(folder: Path) -> None:
    (folder / "parts" / "rest.yaml").unlink()
    assert why(folder / "run.yaml") == f"base_config names {folder}/parts/rest.yaml, and there is no such file"
    assert CliRunner().invoke(app, ["convert", str(folder / "run.yaml")]).exit_code == 1


def test_circles_and_depth_are_refused(folder: Path) -> None:
    (folder / "parts" / "rest.yaml").write_text("base_config: ../run.yaml\n")
    assert "leads in a circle" in why(folder / "run.yaml")
    for step in range(13):
        (folder / f"step{step}.yaml").write_text(f"base_config: step{step + 1}.yaml\n")
    assert "10 deep" in why(folder / "step0.yaml")


def test_a_fan_of_parts_is_bounded(folder: Path) -> None:
    for step in range(8):
        (folder / f"fan{step}.yaml").write_text(f"base_config: [{', '.join([f'fan{step + 1}.yaml'] * 9)}]\n")
    (folder / "fan8.yaml").write_text("seed: 1\n")
    assert "more than 64 files" in why(folder / "fan0.yaml")


def test_a_part_that_is_no_yaml_is_an_error_with_its_place(folder: Path) -> None:
    (folder / "parts" / "rest.yaml").write_text("a: [1\n")
    with pytest.raises(UnreadableError, match=r"parts/rest\.yaml:2:1: not valid YAML") as caught:
        read(folder / "run.yaml")
    assert caught.value.status == Exit.UNREADABLE


def test_standard_input_has_no_folder(folder: Path) -> None:
    result = CliRunner().invoke(app, ["convert", "-"], input=OWN)
    assert result.exit_code == 1
    assert "standard input has no folder" in result.stderr


def test_parts_that_were_not_read_refuse_the_file() -> None:
    (entry,) = convert(document(OWN), Options()).refusals
    assert "were not read" in entry.outcome.why


def test_a_null_base_config_includes_nothing(folder: Path) -> None:
    (folder / "run.yaml").write_text("base_config: null\n" + GRAPH)
    conversion = read(folder / "run.yaml")
    assert conversion.family.value == "mcore"
    assert conversion.text is not None
