"""Checkpoints of a run while it trains: when, what, where, and which of them stay."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from msmigrate.problems import UnreadableError
from msmigrate.pynative import Config
from msmigrate.pynative.sections import Checkpoint as Section
from msmigrate.yaml.source import shown_path
from msrt.checkpoint.common import Progress, common_of
from msrt.checkpoint.folder import remove_leftovers
from msrt.checkpoint.keep import owner, remove_oldest
from msrt.checkpoint.layout import iteration_name, iterations, model_file, optimizer_file
from msrt.checkpoint.write import TensorFile, all_of, write_checkpoint
from msrt.train.folder import claimed
from msrt.train.loop import Run
from msrt.train.memory import GIB
from msrt.train.resume import settings_of
from msrt.train.snapshot import LiveTensor, optimizer_tensors, weight_tensors

LOCK = ".checkpoints.lock"
OPTION = "checkpoint.save_path"


def save_root(section: Section, output: Path) -> Path:
    """Where checkpoints go: checkpoint.save_path, or `checkpoints` in the run's folder when that is empty."""
    return Path(section.save_path) if section.save_path else output / "checkpoints"


@contextmanager
def saving(config: Config, run: Run, run_id: str, root: Path, note: Callable[[str], None]) -> Iterator["Saver | None"]:
    """What saves the run's checkpoints into `root`, made and held against other runs; None when saving is off.

    The end of the block waits for a checkpoint that is still being written. Raises UnreadableError for a folder that
    cannot be written, that has too little space for one checkpoint, or that has other things under a checkpoint's name.
    """
    if not config.checkpoint.enable_save:
        yield None
        return
    with claimed(root, note, OPTION, LOCK):
        remove_leftovers(root)
        saver = Saver(config, run, run_id, root)
        saver.refuse_full_disk()
        _look_at_others(saver, run, note)
        try:
            yield saver
        except Exception:  # the run has failed; the checkpoint that is being written is whole all the same
            saver.join()
            raise
        saver.wait()


@dataclass(frozen=True)
class _Job:
    """One checkpoint, ready to be written."""

    root: Path
    step: int
    files: tuple[TensorFile, ...]
    common: dict[str, object]
    run_id: str
    limit: int

    def write(self) -> None:
        """Write it and name it in the tracker; then the oldest ones of the run may go."""
        write_checkpoint(self.root, self.step, self.files, self.common, {}, replace=True)
        remove_oldest(self.root, self.run_id, self.step, self.limit)


class Saver:
    """Saves a run by the rules of its checkpoint section; `saved` is the step of the last checkpoint, 0 for none."""

    def __init__(self, config: Config, run: Run, run_id: str, root: Path) -> None:
        self.root, self.run_id, self.saved = root, run_id, 0
        self._config, self._run, self._section = config, run, config.checkpoint
        self._settings = settings_of(config)
        tensors = {model_file: weight_tensors(run.model, run.optimizer)}
        if not self._section.no_save_optim:
            tensors[optimizer_file] = optimizer_tensors(run.optimizer)
        world = run.numbers.world_size
        self._files = {name(self._section.prefix, run.rank, world): found for name, found in tensors.items()}
        self._writer: _Background | None = None

    def due(self, step: int) -> bool:
        """Whether the run saves after `step`: every save_interleaved_steps, and at its end."""
        return step % self._section.save_interleaved_steps == 0 or step == self._run.numbers.steps

    def save(self, step: int) -> None:
        """Save the run as it is after `step`; with async_save it is only begun, once the one before is written.

        Raises UnreadableError when this one, or the one begun before, cannot be written; earlier ones stay as they are.
        """
        self.wait()
        job = _Job(
            self.root,
            step,
            tuple(self._file(name, tensors) for name, tensors in self._files.items()),
            common_of(
                step,
                self._config.model,
                global_batch_size=self._run.numbers.global_batch_size,
                progress=self._progress(step),
            ),
            self.run_id,
            self._section.save_max,
        )
        self.saved = step
        if self._section.async_save:
            self._writer = _Background(job.write)
        else:
            job.write()

    def check(self) -> None:
        """Raises what went wrong in the background, if anything did."""
        if self._writer is not None and self._writer.finished:
            self.wait()

    def wait(self) -> None:
        """Wait for the checkpoint that is being written; raises what went wrong."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.result()

    def join(self) -> None:
        """Wait for the checkpoint that is being written, whatever becomes of it."""
        if self._writer is not None:
            self._writer.join()

    def refuse_full_disk(self) -> None:
        """Raises UnreadableError when the file system has less space than one checkpoint takes."""
        needed = sum(tensor.spec.nbytes for tensors in self._files.values() for tensor in tensors)
        free = shutil.disk_usage(self.root).free
        if needed > free:
            raise UnreadableError(
                f"{OPTION} {shown_path(str(self.root))} has {free / GIB:,.2f} GiB free; one checkpoint takes "
                f"{needed / GIB:,.2f} GiB. Make room, or name another folder."
            )

    def _file(self, name: str, tensors: list[LiveTensor]) -> TensorFile:
        pieces = [all_of(tensor.spec) for tensor in tensors]
        if not self._section.async_save:
            return TensorFile(name, pieces, (tensor.take() for tensor in tensors))
        return TensorFile(name, pieces, [np.array(tensor.take()) for tensor in tensors])

    def _progress(self, step: int) -> Progress:
        numbers, training = self._run.numbers, self._config.training
        return Progress(
            run_id=self.run_id,
            step=step,
            consumed_samples=step * numbers.global_batch_size,
            updates=self._run.optimizer.updates,
            skipped_in_a_row=self._run.skip.in_a_row,
            optimizer=self._config.optimizer.type,
            global_batch_size=numbers.global_batch_size,
            seq_length=numbers.seq_length,
            seed=training.seed,
            settings=self._settings,
        )


class _Background:
    """`work` on a thread of its own, which does not keep the process alive when a second Ctrl-C ends it."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=partial(self._do, work), name="checkpoint", daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        return not self._thread.is_alive()

    def join(self) -> None:
        """Wait for the end of the work."""
        self._thread.join()

    def result(self) -> None:
        """Wait for the end of the work; raises what it raised."""
        self.join()
        if self._error is not None:
            raise self._error

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # handed to the thread that waits for it
            self._error = error


def _look_at_others(saver: Saver, run: Run, note: Callable[[str], None]) -> None:
    """Tells of other runs' checkpoints in the folder; refuses folders that are no checkpoints of msrt's."""
    found = {step: saver.root / iteration_name(step) for step in iterations(saver.root)}
    shown = shown_path(str(saver.root))
    unknown = [
        path.name
        for step, path in found.items()
        if run.done < step <= run.numbers.steps and saver.due(step) and owner(path) is None and any(path.iterdir())
    ]
    if unknown:
        raise UnreadableError(
            f"{OPTION} {shown} has {', '.join(unknown)}, which this run would write and which no run of msrt has "
            "written. Move it away, or name another folder."
        )
    foreign = [step for step, path in found.items() if owner(path) not in (None, saver.run_id)]
    if foreign:
        note(
            f"{shown} has checkpoints of another run, of steps {', '.join(map(str, foreign))}. This run replaces those "
            "of steps that it saves too, and leaves the others; to go on from them, start it with --resume auto."
        )
