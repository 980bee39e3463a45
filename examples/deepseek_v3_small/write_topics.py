"""Writes Python's own help texts (pydoc_data.topics) as one JSON object per line: real English that needs no download.

Usage: write_topics.py OUT.jsonl
"""

import json
import sys
from pathlib import Path
from pydoc_data.topics import topics


def main(path: Path) -> None:
    """Write one line per topic."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"text": text}, ensure_ascii=False) for _, text in sorted(topics.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    size = sum(len(text) for text in topics.values())
    print(f"{len(lines)} topics, {size:,} characters → {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
