"""Rows of the manual's section 2: length, batch and randomness of the run."""

from msmigrate.mapping.back import schedule as back
from msmigrate.mapping.back import settings
from msmigrate.mapping.back.context import always
from msmigrate.mapping.context import Context
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused, written
from msmigrate.mapping.rows import Row, computed, default_of, derived, goes, judged, renamed
from msmigrate.mapping.schedule import BatchFactors, Result, global_batch, steps_per_epoch, total_steps
from msmigrate.problems import UserError
from msmigrate.wording import counted, shown
from msmigrate.yaml.nodes import Leaf


def planned_steps(context: Context) -> Result | Outcome:
    """Optimizer steps of the graph run before stop_step, or the refusal that names the missing fact."""
    graph = context.graph
    batch = context.global_batch()
    if batch is None:
        return _needs_world()
    samples = context.samples().value
    if not isinstance(samples, int):
        return refused(
            f"the number of training samples {_missing_samples(context)}, and the steps follow from it",
            pynative="training.steps",
            advice="give it with --samples N, or the steps with --set training.steps=N",
            final=True,
        )
    per_epoch = steps_per_epoch(
        samples,
        batch.value,
        drop_remainder=graph.flag("train_dataset.drop_remainder", True),
        repeat=graph.positive("train_dataset.repeat", 1),
        whole_batches_only=context.megatron,
    )
    sink_size = graph.integer("runner_config.sink_size", 1)
    if sink_size == 0 or sink_size < -1:
        return refused(f"sink_size is {sink_size}; graph mode takes -1 or at least 1", final=True)
    steps = total_steps(
        per_epoch.value,
        graph.positive("runner_config.epochs", 1),
        sink_mode=graph.flag("runner_config.sink_mode", True),
        sink_size=sink_size,
    )
    return Result(steps.value, f"{per_epoch.arithmetic}; {steps.arithmetic}")


def _missing_samples(context: Context) -> str:
    """Why the file does not tell its number of samples, as the end of a sentence."""
    sizes = context.graph.value("train_dataset.data_loader.sizes")
    if sizes is None:
        return "is not in the file"
    if not context.megatron:
        loader = context.graph.value("train_dataset.data_loader.type")
        return f"is not in the file (`sizes` belongs to the Megatron loader, {shown(loader)} does not read it)"
    return f"cannot be read off `sizes`, which is {shown(sizes)}"


def _needs_world() -> Outcome:
    return refused(
        "parallel_mode is not semi-automatic, so the global batch is batch_size × devices, and the devices are not in "
        "the file",
        pynative="training.global_batch_size",
        advice="give their number with --world N",
        final=True,
    )


def stop_step(context: Context) -> int | None:
    """The step at which the graph run stops early; None when it runs to its end."""
    graph = context.graph
    given = [graph.value("runner_config.stop_step")]
    given += [item.get("stop_step") for item in graph.callbacks() if item.get("type") == "TrainCallBack"]
    for stop in given:
        if stop is not None and (not isinstance(stop, int) or isinstance(stop, bool)):
            raise UserError(f"{graph.document.source.name}: `stop_step` is {shown(stop)}; expected a whole number")
    found = [stop for stop in given if isinstance(stop, int) and stop > 0]
    return min(found) if found else None


def _steps(context: Context) -> Outcome:
    steps = planned_steps(context)
    if isinstance(steps, Outcome):
        return steps
    if steps.value < 1:
        return refused(
            f"the run has {counted(steps.value, 'step')} ({steps.arithmetic})",
            pynative="training.steps",
            advice="check the sizes, the batch and sink_size, or give --samples N",
            final=True,
        )
    stop = stop_step(context)
    if stop is None or stop >= steps.value:
        return written(
            Fate.COMPUTED,
            "training.steps",
            steps.value,
            "optimizer steps of the whole run" + _followed(context),
            arithmetic=steps.arithmetic,
        )
    return written(
        Fate.COMPUTED,
        "training.steps",
        stop,
        f"stop_step {stop} ends the run before its {steps.value} steps" + _followed(context),
        arithmetic=f"{steps.arithmetic}; min({steps.value}, {stop}) = {stop}",
    )


def run_steps(context: Context) -> int | None:
    """Optimizer steps of the run that is written, `--set` above the file; None where nothing tells them."""
    outcome = context.derive(_STEPS)
    steps = context.options.overrides.get(_STEPS, outcome.value if outcome is not None else None)
    return steps if isinstance(steps, int) else None


def _followed(context: Context) -> str:
    """The keys that `--set` gives and the steps follow from, for the reason of the steps; empty without one."""
    given = [key for key in (_BATCH, "train_dataset.dataloader.sizes") if key in context.options.overrides]
    return f"; they follow --set {' and --set '.join(given)}" if given else ""


def _repeat(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if context.megatron:
        return dropped("the Megatron loader does not read it", pynative=row.pynative)
    found = context.derive(_STEPS)
    assert found is not None
    return found


def _global_batch(context: Context) -> Outcome:
    factors = context.batch_factors()
    batch = global_batch(factors)
    if batch is None:
        return _needs_world()
    if factors.micro_batch_interleave_num > 1 and context.graph.given("use_legacy"):
        context.note(
            f"micro_batch_interleave_num {factors.micro_batch_interleave_num} multiplies the global batch, but graph "
            "mode refuses values above 1 with use_legacy: False"
        )
    why = "samples of one optimizer step"
    idle = _idle_factor(factors)
    if idle is not None:
        path, reason = idle
        context.note(f"`{path}` (line {context.graph.line(path)}): {reason}; global_batch_size is {batch.value}")
        why += f"; {reason}"
    return written(Fate.COMPUTED, "training.global_batch_size", batch.value, why, arithmetic=batch.arithmetic)


def _idle_factor(factors: BatchFactors) -> tuple[str, str] | None:
    """The key that looks as if it multiplied the batch, which graph mode resets to 1, and why; None without one."""
    micro, accumulation, stages = (
        factors.micro_batch_num, factors.gradient_accumulation_steps, factors.pipeline_stage,
    )  # fmt: skip
    if not factors.degrees_hold:
        return None
    if stages == 1 and micro > 1:
        return "parallel_config.micro_batch_num", f"micro_batch_num {micro} has no effect with one pipeline stage"
    if stages > 1 and accumulation > 1:
        reason = f"gradient_accumulation_steps {accumulation} has no effect with {stages} pipeline stages"
        return "runner_config.gradient_accumulation_steps", reason
    return None


def _deterministic(context: Context) -> Outcome | None:
    """Bit-identical runs, which graph mode asks for by either of two keys."""
    graph = context.graph
    given = [graph.value(key) for key in _DETERMINISM if graph.value(key) is not None]
    if not given:
        return None
    asked = any(value in (True, "ON") for value in given)
    return written(Fate.RENAMED, "training.deterministic", asked, "bit-identical results for identical runs")


_DETERMINISM = ("train_precision_sync", "context.deterministic")
_STEPS = "training.steps"
_SINK = "no step is lost to rounding"
_BATCH = "training.global_batch_size"

ROWS: tuple[Row, ...] = (
    renamed("seed", "training.seed", "2.2"),
    default_of("seed", "training.seed", "2.1", 1),
    *(computed(key, "training.deterministic", None, "null, as if it were absent") for key in _DETERMINISM),
    derived(
        "training.deterministic",
        "2.1",
        _deterministic,
        back=settings.deterministic,
        about="True where one of the two graph keys is True or ON",
    ),
    renamed("runner_config.batch_size", "training.local_batch_size", "2.2", back=back.batch_size),
    default_of("batch_size", "training.local_batch_size", "2.1", 1),
    computed("runner_config.epochs", _STEPS, "2.2", back=back.epochs),
    computed("runner_config.sink_mode", _STEPS, "appendix", back=always("runner_config.sink_mode", True, _SINK)),
    computed("runner_config.sink_size", _STEPS, "appendix", back=always("runner_config.sink_size", 1, _SINK)),
    computed("runner_config.stop_step", _STEPS, None, back=back.stop_step),
    computed("callbacks[TrainCallBack].stop_step", _STEPS, None),
    goes("callbacks[TrainCallBack].type", "its stop_step decides training.steps"),
    judged(
        "train_dataset.repeat",
        _STEPS,
        None,
        _repeat,
        Fate.COMPUTED,
        about="a factor of the steps of an epoch; dropped with the Megatron loader, which does not read it",
    ),
    computed("train_dataset.data_loader.num_samples", _STEPS, None),
    derived(
        _STEPS,
        "2.1",
        _steps,
        about="epochs × steps of an epoch (samples / global batch × repeat), rounded as sinking rounds, and no more "
        "than stop_step; refused where the samples are not known (--samples)",
    ),
    computed("parallel_config.micro_batch_num", _BATCH, "2.2", back=back.micro_batch_num),
    computed("micro_batch_interleave_num", _BATCH, None),
    computed("runner_config.gradient_accumulation_steps", _BATCH, "appendix", back=back.accumulation),
    derived(
        _BATCH,
        "2.1",
        _global_batch,
        about="batch_size × data_parallel × micro_batch_interleave_num × micro_batch_num (with pipeline stages) or "
        "gradient_accumulation_steps (without); batch_size × devices where the degrees do not hold (--world)",
    ),
    goes("runner_config.initial_epoch", "a resumed run takes its position from the checkpoint", "appendix"),
    Row("runner_config.sink_batch", None, Fate.DROPPED, Effect.NONE, "graph mode does not read it", "appendix"),
)
