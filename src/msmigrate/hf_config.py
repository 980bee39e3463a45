"""A Hugging Face config.json: the shape of a model that a graph file only names."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from msmigrate.json_text import parse_json
from msmigrate.mapping.graph_file import GraphFile
from msmigrate.options import Options
from msmigrate.problems import UnreadableError
from msmigrate.yaml.document import Document
from msmigrate.yaml.scalars import Value
from msmigrate.yaml.source import read_source

FILE = "config.json"


def read_hf_config(path: str) -> tuple[Mapping[str, Value], str]:
    """The keys of a config.json and its path; `path` is the file or its folder.

    Raises UnreadableError when it is missing, no JSON, or no object with a model_type.
    """
    file = str(Path(path) / FILE) if Path(path).is_dir() else path
    source = read_source(file)
    config = parse_json(source.text, file)
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise UnreadableError(f"{file} is no model's config.json: it has no model_type")
    return config, file


def with_local_config(options: Options, document: Document) -> Options:
    """Options with the config.json of the file's `pretrained_model_dir`, when that folder is on this machine."""
    folder = GraphFile(document).value("pretrained_model_dir")
    if options.hf_config is not None or not isinstance(folder, str) or not folder:
        return options
    if not (Path(folder) / FILE).is_file():
        return options
    config, path = read_hf_config(folder)
    return replace(options, hf_config=config, hf_config_path=path)
