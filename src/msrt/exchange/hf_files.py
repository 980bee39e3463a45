"""The small files of a Hugging Face folder, and a config.json for weights that came without one."""

import json
from collections.abc import Mapping
from pathlib import Path

from msmigrate.problems import UnreadableError
from msmigrate.pynative import Model, specs_of
from msmigrate.pynative.families import FAMILY_DEFAULTS, READER_DEFAULTS
from msmigrate.yaml.source import shown_path
from msrt.weights.hf import INDEX

SUFFIXES = frozenset({".json", ".txt", ".model", ".jinja"})
"""Endings of config, generation settings, tokenizer and chat template."""

LARGEST = 64 << 20
"""Bytes; tokenizers of large vocabularies have some 20 MB."""


def small_files(folder: Path) -> dict[str, bytes]:
    """The contents of the files in `folder` that go along with weights, by name; none when there is no such folder."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.suffix not in SUFFIXES or path.name == INDEX or not path.is_file():
            continue
        try:
            if path.stat().st_size <= LARGEST:
                found[path.name] = path.read_bytes()
        except OSError as error:
            raise UnreadableError(f"{shown_path(str(path))} cannot be read: {error.strerror}.") from error
    return found


def made_config(section: Model, dtype: str) -> dict[str, object]:
    """A config.json for the model of a pynative.yaml, under the names of the model's family.

    `dtype` is the type of the weights as torch names it. Transformers' arithmetic for it may differ from MindFormers':
    see `same_model.other_arithmetic`.
    """
    assert section.model_type is not None
    given = {name: getattr(section, name) for name in specs_of(Model)}
    made: dict[str, object] = {"architectures": [section.architectures], "model_type": section.model_type}
    for name, default in FAMILY_DEFAULTS.get(section.model_type, {}).items():
        spec = next((spec for spec in specs_of(Model).values() if name in (spec.name, *spec.key.aliases)), None)
        value = None if spec is None else given[spec.name]
        keeps_null = spec is not None and spec.key.null_is_a_value
        made[name] = default if value is None and not keeps_null else value
    if section.head_dim is not None:  # not every family has a default for it
        made["head_dim"] = section.head_dim
    if section.untie_embeddings_and_output_weights is False:
        made["tie_word_embeddings"] = True
    made.update(_yarn(section, made), torch_dtype=dtype)
    return made


def _yarn(section: Model, made: Mapping[str, object]) -> dict[str, object]:
    """rope_scaling, and the length that it reaches, as Hugging Face states them."""
    if section.rope_scaling is not None or section.position_embedding_type != "yarn":
        return {}
    factor = section.scaling_factor or section.rotary_scaling_factor or READER_DEFAULTS["rotary_scaling_factor"]
    original = made["max_position_embeddings"]
    assert isinstance(factor, int | float)
    assert isinstance(original, int)
    scaling: dict[str, object] = {"type": "yarn", "factor": factor, "original_max_position_embeddings": original}
    for name in ("beta_fast", "beta_slow", "mscale", "mscale_all_dim"):
        value = getattr(section, name)
        if value is not None:
            scaling[name] = value
    return {"rope_scaling": scaling, "max_position_embeddings": int(original * factor)}


def config_json(values: Mapping[str, object]) -> bytes:
    """The text of a config.json, UTF-8."""
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()
