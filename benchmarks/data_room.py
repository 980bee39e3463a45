"""Speed of reading micro-batches and of make-data with 1 and 2 workers, against the first way in the same run.

Usage: python benchmarks/data_room.py [ROUNDS]

With the tokenizers library a BPE of 8,000 tokens is measured, too. Prints the median over the rounds, in each of which
every way is measured in turn. Starting processes is part of make-data's time, as a user waits for it; a run starts them
once, so reading leaves it out.
"""

import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from msrt.data import SampleOrder, make_data, micro_batches_ahead
from msrt.data.blend import build_part
from msrt.data.data_path import parse_data_path
from msrt.data.sample import GPTConfig
from msrt.data.split import parse_split
from msrt.data.stream import SampleSource

SEQ_LENGTH = 1024
BATCH = 4
BATCHES = 100
WARM_UP = 20
MEGABYTES = 32
BPE_MEGABYTES = 4
WAYS = {
    "when asked for": (0, 1, False),
    "1 thread": (2, 1, False),
    "2 threads": (2, 2, False),
    "1 process": (2, 1, True),
    "2 processes": (2, 2, True),
}
"""Name to prefetch_size, num_parallel_workers, python_multiprocessing."""


def write_texts(path: Path, megabytes: float) -> float:
    """Lines of random words; their megabytes, a little more than `megabytes`."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(5000)]
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < megabytes * 1e6:
            for _ in range(1000):
                file.write(json.dumps({"text": " ".join(draw.choices(words, k=300))}) + "\n")
    return path.stat().st_size / 1e6


def write_bpe(path: Path, texts: Path) -> None:
    """A byte-level BPE of 8,000 tokens, trained on the first lines of `texts`."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    with texts.open(encoding="utf-8") as file:
        lines = [json.loads(line)["text"] for line in islice(file, 1000)]
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=8000, show_progress=False))
    tokenizer.save(str(path))


def made_per_second(texts: Path, megabytes: float, tokenizer: str, workers: int) -> float:
    """Megabytes of text that make-data takes in a second."""
    start = time.perf_counter()
    prefix = texts.with_suffix("")
    make_data([texts], prefix, tokenizer=tokenizer, append_eod=False, workers=workers, force=True)
    return megabytes / (time.perf_counter() - start)


def samples_per_second(source: SampleSource, prefetch_size: int, workers: int, processes: bool) -> float:
    """Samples handed out in a second once the workers run."""
    order = SampleOrder(len(source), BATCH, 1, 1)
    with micro_batches_ahead(
        source, order.micro_batches(0), prefetch_size=prefetch_size, workers=workers, processes=processes
    ) as batches:
        for _ in islice(batches, WARM_UP):
            pass
        start = time.perf_counter()
        for _ in islice(batches, BATCHES):
            pass
        return BATCHES * BATCH / (time.perf_counter() - start)


def table(title: str, unit: str, ways: dict[str, Callable[[], float]], rounds: int) -> None:
    """Measure all ways in turn and print them beside the first one."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, measure in ways.items():
            found[name].append(measure())
    first = statistics.median(next(iter(found.values())))
    print(f"| {title} | {unit} | ratio |\n|---|---|---|")
    for name, values in found.items():
        median = statistics.median(values)
        print(f"| {name} | {median:.3g} | {median / first:.2f} |")
    print()


def main(rounds: int) -> None:
    """Make a corpus in a temporary folder and measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts, some = folder / "texts.jsonl", folder / "some.jsonl"
        make = partial(made_per_second, texts, write_texts(texts, MEGABYTES), "bytes")
        table("make-data, bytes", "MB/s", {"1 worker": partial(make, 1), "2 workers": partial(make, 2)}, rounds)
        if find_spec("tokenizers"):
            write_bpe(folder / "tokenizer.json", texts)
            make = partial(made_per_second, some, write_texts(some, BPE_MEGABYTES), str(folder))
            table("make-data, BPE", "MB/s", {"1 worker": partial(make, 1), "2 workers": partial(make, 2)}, rounds)
        for mask in (False, True):
            config = GPTConfig(SEQ_LENGTH, eod=256, create_attention_mask=mask)
            source = build_part(parse_data_path(str(folder / "texts")), parse_split("1"), "train", None, config)
            assert source is not None
            ways = {name: partial(samples_per_second, source, *way) for name, way in WAYS.items()}
            table(f"reading, {'with' if mask else 'without'} a mask", "samples/s", ways, rounds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
