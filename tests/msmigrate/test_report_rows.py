"""The report as people read it: the verdict, what is put together in a row, and what aliases bring in."""

import pytest
from graph_text import converted, edited, fates

from msmigrate.entries import Conversion
from msmigrate.mapping.outcome import Fate
from msmigrate.options import Options
from msmigrate.report import markdown_report, report_object, summary, text_report, totals
from msmigrate.report_rows import groups, verdict

OPTIMIZER = "optimizer:\n  type: AdamW\n  betas: [0.9, 0.98]\n  eps: 1.e-8\n  weight_decay: 0.05\n"
ALIASED = edited(
    (OPTIMIZER, "optimizer: *o\n"),
    ("  batch_size: 2\n", "  <<: *b\n"),
    ("seed: 7\n", OPTIMIZER.replace("optimizer:", "opt0: &o") + "base: &b\n  batch_size: 2\nseed: 7\n"),
)
LOSSY = edited(("type: AdamW\n", "type: AdamWeightDecay\n"))


def titles(conversion: Conversion) -> list[str]:
    return [title for title, _ in groups(conversion)]


def test_the_verdict_comes_first() -> None:
    plain = converted(edited())
    assert verdict(plain) == "Nothing changes training."
    assert markdown_report(plain).split("\n")[2] == "**Nothing changes training.**"
    assert text_report(plain).split("\n")[1].strip() == "Nothing changes training."
    lossy = converted(LOSSY, Options(allow_lossy=True))
    assert verdict(lossy) == "1 loss changes training: `optimizer.type`."
    assert verdict(converted(LOSSY)) == "Refused, nothing is written: 1 reason below."


def test_unknown_keys_that_may_matter_are_in_the_verdict() -> None:
    found = verdict(converted(edited(("    hidden_size: 64\n", "    hidden_size: 64\n    hidden_sise: 64\n"))))
    assert found == (
        "Nothing that is known changes training; 1 unknown key may change it: `model.model_config.hidden_sise`."
    )


def test_a_section_is_said_once_and_every_row_has_a_reason() -> None:
    report = markdown_report(converted(edited()))
    assert "| in model.model_config: model_type, vocab_size, hidden_size, " in report
    assert report.count("model.model_config") < 4
    assert "| graph | pynative | effect | why |" in report
    assert "| lr_schedule.type: ConstantWarmUpLR | lr_scheduler.type: ConstantWarmUpLR | none | moved |" in report
    assert "| runner_config.batch_size: 2 | training.local_batch_size: 2 | none | renamed |" in report
    assert "|  |" not in report
    assert "\n\n\n" not in report


def test_what_is_computed_from_the_whole_file_is_no_default() -> None:
    conversion = converted(edited())
    rows = dict(groups(conversion))
    computed = next(rows[title] for title in rows if title.startswith("Computed"))
    defaults = next(rows[title] for title in rows if title.startswith("Written because the modes differ"))
    assert any(row.left == "(worked out)" and "recompute.full_recompute_layer" in row.right for row in computed)
    assert not any("full_recompute_layer" in row.right for row in defaults)
    written = [entry for entry in conversion.entries if entry.source is None and entry.outcome.writes]
    count = sum(entry.outcome.fate is Fate.DEFAULT for entry in written)
    assert f"; {len(written) - count} more computed; {count} written because the modes differ" in summary(conversion)


@pytest.mark.parametrize("report", [markdown_report, text_report])
def test_keys_that_aliases_bring_in_have_their_path_and_a_group(report: object) -> None:
    assert callable(report)
    conversion = converted(ALIASED)
    assert "Brought in by `optimizer: *o` (4)" in titles(conversion)
    assert "Brought in by `runner_config.<<: *b` (1)" in titles(conversion)
    text = report(conversion)
    assert "in optimizer: type, betas, eps, weight_decay" in text
    assert "runner_config.batch_size: 2" in text
    assert "None" not in text


def test_aliases_change_neither_the_text_nor_the_numbers() -> None:
    aliased, plain = converted(ALIASED), converted(edited())
    assert aliased.text is not None
    assert plain.text is not None
    assert sorted(aliased.text.splitlines()) == sorted(plain.text.splitlines())
    assert summary(aliased).partition("; ")[2] == summary(plain).partition("; ")[2]
    entries = report_object(aliased)["entries"]
    assert isinstance(entries, list)
    assert sum(entry["graph"] is not None for entry in entries) == totals(aliased)["leaves_read"]


def test_a_section_that_holds_anchors_is_not_unknown() -> None:
    conversion = converted(ALIASED)
    found = fates(conversion)
    assert {found[key] for key in found if key.startswith(("opt0.", "base."))} == {"dropped"}
    why = "its keys are written where aliases take them"
    assert {entry.outcome.why for entry in conversion.entries if str(entry.graph).startswith("opt0.")} == {why}


def test_keys_that_no_alias_takes_stay_unknown() -> None:
    text = edited(("seed: 7\n", "vars:\n  rate: &r 4.e-4\n  idle: &i 3\nspare: &s\n  a: 1\nseed: 7\n"))
    found = fates(converted(text.replace("learning_rate: 4.e-4", "learning_rate: *r") + "other: *s\n"))
    assert (found["vars.rate"], found["vars.idle"], found["spare.a"]) == ("dropped", "unknown", "unknown")
