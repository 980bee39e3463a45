import json
import math
import os
import struct
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from fake_model import numbers

from msmigrate.problems import UnreadableError
from msmigrate.pynative import Config, Model
from msrt.train.curve import LossCurve, Series, named_apart, read_curve, smoothed
from msrt.train.fonts import drawable
from msrt.train.plot import plot_png
from msrt.train.run_json import read_vocab_size, run_json
from msrt.train.terminal_plot import plot_text

FALLING = LossCurve("run", (1, 2, 3, 4), (6.0, 4.0, 3.0, 2.0), math.log(512))


def write_rows(folder: Path, *rows: dict[str, object]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_run_json_holds_the_config_the_numbers_and_the_versions() -> None:
    content = json.loads(run_json(Config(model=Model(vocab_size=512)), numbers(3, 2), "a.yaml"))
    assert content["config"]["training"]["seed"] == 42
    assert content["config"]["model"]["vocab_size"] == 512
    assert content["numbers"]["gradient_accumulation_steps"] == 2
    assert content["world_size"] == 1
    assert content["config_file"] == "a.yaml"
    assert set(content["versions"]) == {"python", "msmigrate", "mindspore", "numpy"}
    assert content["versions"]["numpy"]


def test_two_runs_have_different_ids() -> None:
    assert len({json.loads(run_json(Config(), numbers(1, 1), "a.yaml"))["run_id"] for _ in range(2)}) == 2


def test_run_json_keeps_names_that_are_not_utf8() -> None:
    name = os.fsdecode("配置".encode() + b"\xe9")
    data = run_json(Config(model=Model(model_type=name)), numbers(1, 1), name)
    content = json.loads(data)
    assert content["config_file"] == content["config"]["model"]["model_type"] == name
    assert "配置".encode() in data


def test_a_curve_is_read_with_the_loss_of_chance(tmp_path: Path) -> None:
    run = write_rows(tmp_path / "mine", {"step": 1, "loss": 6.0}, {"step": 2, "loss": None}, {"step": 3, "loss": 5})
    assert read_curve(run) == LossCurve("mine", (1, 3), (6.0, 5.0), None)
    (run / "run.json").write_bytes(run_json(Config(model=Model(vocab_size=100)), numbers(3, 1), "a.yaml"))
    assert read_curve(run / "metrics.jsonl").chance == pytest.approx(4.60517, rel=1e-6)


def test_losses_that_are_not_finite_and_a_half_written_last_line_are_left_out(tmp_path: Path) -> None:
    run = write_rows(
        tmp_path / "mine", {"step": 1, "loss": 6.0}, {"step": 2, "loss": math.nan}, {"step": 3, "loss": 5.0}
    )
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')
    assert read_curve(run).steps == (1, 3)


@pytest.mark.parametrize("rows", [[], [{"step": 1, "loss": None}], [{"loss": 2.0}], [{"step": 1, "loss": "2"}]])
def test_rows_without_a_curve_are_refused(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    with pytest.raises(UnreadableError, match="has no curve"):
        read_curve(write_rows(tmp_path, *rows))


def test_gradient_norms_and_learning_rates_are_read_where_they_are_finite(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"step": 1, "loss": 6.0, "lr": 0.5, "grad_norm": None},
        {"step": 2, "loss": None, "lr": 1, "grad_norm": 2.0},
    ]
    assert read_curve(write_rows(tmp_path, *rows)).below == {
        "grad_norm": Series((2,), (2.0,)),
        "lr": Series((1, 2), (0.5, 1.0)),
    }


def test_runs_are_called_by_the_shortest_end_of_their_paths_that_tells_them_apart(tmp_path: Path) -> None:
    a, b, c = (write_rows(tmp_path / name, {"step": 1}) for name in ("a", "b", "c"))
    runs = [write_rows(a / "run", {}), write_rows(b / "run", {}) / "metrics.jsonl", c]
    assert named_apart(runs) == ["a/run", "b/run", "c"]
    assert named_apart([c, c]) == ["c", "c"]


def test_a_damaged_run_json_is_named(tmp_path: Path) -> None:
    assert read_vocab_size(tmp_path) is None
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UnreadableError, match=r"run\.json is damaged"):
        read_vocab_size(tmp_path)


def test_smoothing_averages_over_a_thirtieth_of_the_run() -> None:
    # 120 values: 2 to each side
    values = tuple(float(place % 5) for place in range(120))
    average = smoothed(values)
    assert len(average) == 120
    assert average[2:118] == pytest.approx([2.0] * 116)
    assert (average[0], average[-1]) == (values[0], values[-1])
    assert average[1] == pytest.approx((0 + 1 + 2) / 3)


def test_smoothing_follows_a_straight_line_without_lag() -> None:
    line = tuple(float(place) for place in range(300))
    assert smoothed(line) == pytest.approx(line)


def test_smoothing_leaves_a_short_run_alone() -> None:
    assert smoothed((3.0, 1.0, 2.0)) == pytest.approx((3.0, 1.0, 2.0))


def test_the_image_is_a_png_of_a_readable_size(tmp_path: Path) -> None:
    target = tmp_path / "loss.png"
    plot_png([FALLING, LossCurve("other", (1, 2), (5.0, 5.5), None)], target)
    data = target.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (1200, 675)
    assert [item.name for item in tmp_path.iterdir()] == ["loss.png"]


def test_a_panel_for_each_further_value_makes_the_image_higher(tmp_path: Path) -> None:
    target = tmp_path / "loss.png"
    norms, rates = Series((1, 2), (1e-3, 10.0)), Series((1, 2), (0.0, 1e-3))
    for below, height in (({"lr": rates}, 900), ({"grad_norm": norms, "lr": rates}, 1125)):
        plot_png([FALLING, replace(FALLING, name="other", below=below)], target)
        assert struct.unpack(">II", target.read_bytes()[16:24]) == (1200, height)


def test_any_name_can_be_drawn_without_a_warning(tmp_path: Path) -> None:
    names = ("训练", "_hidden", "$a$b$", "line\nbreak", os.fsdecode(b"caf\xe9"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_png([replace(FALLING, name=name) for name in names], tmp_path / "loss.png")


def test_characters_that_no_installed_font_has_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msrt.train.fonts._characters", lambda: frozenset(map(ord, "run中")))
    assert drawable("run中文") == "run中\\u6587"


def test_an_image_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="nowhere"):
        plot_png([FALLING], tmp_path / "nowhere" / "loss.png")


def test_the_terminal_plot_falls_from_left_to_right() -> None:
    lines = plot_text(LossCurve("run", (1, 2, 3), (3.0, 2.0, 1.0), None), height=3).splitlines()
    assert lines == ["run: loss 3.0000 -> 1.0000", "   3.000 |*", "   2.000 | *", "   1.000 |  *", "    step  1 3"]


def test_the_terminal_plot_marks_the_loss_of_chance() -> None:
    text = plot_text(LossCurve("run", (1, 2), (2.0, 1.0), 3.0), height=3)
    assert "   3.000 |--" in text
    assert text.endswith("--- ln(vocab_size) = 3.000")


def test_a_long_run_is_averaged_into_the_width() -> None:
    steps = tuple(range(1, 1001))
    lines = plot_text(LossCurve("run", steps, tuple(1000.0 / step for step in steps), None), width=40).splitlines()
    assert max(map(len, lines)) <= 50
    assert lines[-1].endswith(" 1000")


@pytest.mark.parametrize("losses", [(2.0,), (2.0, 2.0)])
def test_a_flat_curve_can_be_drawn(losses: tuple[float, ...]) -> None:
    text = plot_text(LossCurve("run", tuple(range(1, len(losses) + 1)), losses, None))
    assert text.count("*") == len(losses)
