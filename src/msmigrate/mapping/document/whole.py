"""The whole document, put together from its parts."""

from collections.abc import Iterator

from msmigrate.mapping.document.cells import section_of
from msmigrate.mapping.document.legacy_files import class_defaults, legacy_defaults, legacy_keys, unlike
from msmigrate.mapping.document.markdown import code, heading, link, table
from msmigrate.mapping.document.there import completed, defaults, graph_rows, only_pynative, subjects
from msmigrate.mapping.document.way_back import added, back_keys, back_model
from msmigrate.mapping.document.words import ENGLISH, Words
from msmigrate.mapping.table import MCORE
from msmigrate.mapping.table.legacy import ROWS as LEGACY_ROWS


def mapping_document(words: Words = ENGLISH) -> str:
    """docs/mapping.md in the language of `words`: every key of both modes, in both directions, as Markdown."""
    return "\n".join([f"# {words.title}\n", words.introduction, *_index(words), *_there(words), *_back(words)])


def _index(words: Words) -> Iterator[str]:
    yield heading(2, words.index, "index")
    yield table(words.index_head, _index_lines(words))
    yield "".join(f"- {link(title, anchor)}\n" for title, anchor in _chapters(words))


def _index_lines(words: Words) -> Iterator[tuple[str, str]]:
    """Keys outside every section, then the sections by name, each with the tables that have its keys."""
    chapters = {(name.replace("_", "-"), words.subjects[name]): rows for name, rows in graph_rows().items()}
    chapters["legacy", words.legacy] = [row for row in LEGACY_ROWS if row.graph]
    sections = {section_of(row) for rows in chapters.values() for row in rows if row.graph != section_of(row)}
    for section in (None, *sorted(sections)):
        having = [
            link(title, anchor)
            for (anchor, title), rows in chapters.items()
            if any((section_of(row) if section_of(row) in sections else None) == section for row in rows)
        ]
        yield words.top_level if section is None else code(section), ", ".join(having)


def _chapters(words: Words) -> tuple[tuple[str, str], ...]:
    return (
        (words.there, "there"),
        (words.defaults, "defaults"),
        (words.completed, "completed"),
        (words.only_pynative, "only-pynative"),
        (words.legacy, "legacy"),
        (words.back, "back"),
    )


def _there(words: Words) -> Iterator[str]:
    yield heading(2, words.there, "there")
    yield words.there_introduction
    yield from subjects(words)
    yield heading(2, words.defaults, "defaults")
    yield words.defaults_introduction
    yield defaults(MCORE, words)
    yield heading(3, words.completed, "completed")
    yield words.completed_introduction
    yield completed(words)
    yield heading(2, words.only_pynative, "only-pynative")
    yield words.only_pynative_introduction
    yield only_pynative(words)
    yield heading(2, words.legacy, "legacy")
    yield words.legacy_introduction
    yield heading(3, words.legacy_model, "legacy-keys")
    yield legacy_keys(words)
    yield heading(3, words.legacy_defaults, "legacy-defaults")
    yield legacy_defaults(words)
    yield heading(3, words.legacy_classes, "legacy-classes")
    yield words.legacy_classes_introduction
    yield class_defaults(words)
    yield heading(3, words.unlike, "legacy-unlike")
    yield unlike(words)


def _back(words: Words) -> Iterator[str]:
    yield heading(2, words.back, "back")
    yield words.back_introduction
    yield heading(3, words.back_keys, "back-keys")
    yield back_keys(words)
    yield heading(3, words.back_model, "back-model")
    yield words.back_model_introduction
    yield back_model(words)
    yield heading(3, words.back_added, "back-added")
    yield words.back_added_introduction
    yield added(words)
