"""The sections of a pynative.yaml as dataclasses: with `model` and `lr_scheduler`, the only list of pynative keys.

Defaults are MindFormers 2.0's. Section numbers are the manual's ("Pynative 模式配置说明").
"""

from dataclasses import dataclass
from typing import ClassVar

from msmigrate.pynative.keys import Use, key
from msmigrate.pynative.lr_scheduler import LrScheduler as LrScheduler
from msmigrate.pynative.model import Model

NO_EFFECT = Use.NO_EFFECT
REFUSED = Use.REFUSED

LayerRanges = tuple[int | str, ...]
"""Layer ids and ranges such as (0, "2-3"): ascending, disjoint, both ends included."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Saving and loading (manual section 1)."""

    enable_save: bool = key(True, "Save checkpoints at all.", manual="1.1")
    save_path: str = key("", "Folder for checkpoints; must not be empty when enable_save is true.", manual="1.1")
    save_max: int = key(5, "Checkpoints kept; the oldest of this run go first.", manual="1.1", minimum=1)
    save_interleaved_steps: int = key(1000, "Optimizer steps between two saves.", manual="1.1", minimum=1)
    no_save_optim: bool = key(False, "Leave optimizer state out of checkpoints: they cannot be resumed.", manual="1.1")
    async_save: bool = key(False, "Write checkpoints while training goes on.", manual="1.1")
    prefix: str | None = key("checkpoint", "First part of checkpoint file names; null for none.", manual="1.1")
    remove_redundancy: bool = key(False, "Write replicated pieces once.", manual="1.1")
    load_path: str = key("", "Checkpoint to load: its root or one iteration folder.", manual="1.1")
    load_balanced: bool = key(False, "Spread the reading of a checkpoint over ranks.", manual="1.1")
    no_load_optim: bool = key(False, "Load weights only; steps and data start at the beginning.", manual="1.1")
    load_worker_number: int = key(1, "Threads that read a checkpoint.", manual="1.1", minimum=1, dead=True)
    save_global_layout_cache: bool = key(True, "Keep the layout of all ranks in memory for saving.", use=NO_EFFECT)
    save_trainable_only: bool = key(False, "Save trainable parameters only.", use=REFUSED, since="2.1")
    base_load_path: str = key("", "Weights under a trainable-only checkpoint.", use=REFUSED, since="2.1")
    reshard_worker_num: int = key(1, "Processes that reshard a checkpoint.", use=NO_EFFECT, since="2.1", minimum=1)


@dataclass(frozen=True, slots=True)
class Training:
    """Length, batch and randomness of a run (manual section 2)."""

    steps: int = key(1000, "Optimizer steps of the whole run.", manual="2.1", minimum=1)
    local_batch_size: int = key(1, "Samples per rank in one forward pass.", manual="2.1", minimum=1)
    global_batch_size: int = key(
        1,
        "Samples of all ranks in one optimizer step; with local_batch_size it fixes the accumulation.",
        manual="2.1",
        minimum=1,
    )
    max_norm: float = key(
        1.0, "Clip gradients to this global norm; there is no off switch, 1.0e+10 never clips.", minimum=0
    )
    seed: int = key(
        42,
        "Seed of weights and of everything random but the sample order.",
        manual="2.1",
        minimum=0,
        maximum=4294967295,
    )
    deterministic: bool = key(False, "Bit-identical results for identical runs.", manual="2.1")
    use_skip_step_on_nan: bool = key(False, "Skip an update whose gradient norm is not finite.", since="2.1")
    max_consecutive_skipped_steps: int = key(
        0, "Skipped updates in a row before the run fails; 0 for no limit.", since="2.1", minimum=0
    )
    loss_normalization: str = key(
        "micro_batch",
        "What a step's loss is a mean of: the means of its micro-batches, as in MindFormers, or all its tokens.",
        choices=("micro_batch", "global_tokens"),
        own=True,
    )
    rampup_batch_size: tuple[int, ...] | None = key(
        None, "[start, increment, samples]: the global batch grows.", use=REFUSED, since="2.1"
    )


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How ranks share the work (manual sections 5 and 11.4)."""

    data_parallel_shard: int = key(
        -1,
        "Ranks over which FSDP shards parameters, gradients and optimizer state; -1: all data-parallel ranks.",
        manual="5.1",
        minimum=-1,
    )
    data_parallel_shard_strategy: str = key(
        "optim_grads_params",
        "What FSDP shards.",
        manual="5.1",
        dead=True,
        choices=("optim_grads_params", "optim_grads", "optim"),
    )
    expert_parallel: int = key(1, "Ranks over which the routed experts are spread.", manual="5.1", minimum=1)
    tensor_parallel: int = key(1, "Ranks that share each layer's matrices.", manual="5.1", minimum=1)
    sequence_parallel: bool = key(
        False, "Shard activations between blocks along the sequence; 2.1 needs it with tensor_parallel above 1."
    )
    reshard_after_forward_policy: str = key(
        "default", "Free gathered parameters after forward.", choices=("always", "never", "default")
    )
    moe_token_dispatcher_type: str = key(
        "alltoall", "How tokens reach their experts.", choices=("alltoall", "alltoall_deredundancy")
    )
    cpu_offload: bool = key(False, "Keep sharded parameters in host memory.", use=REFUSED)
    disable_gradient_division: bool = key(True, "Leave the mean over ranks to the loss.", use=NO_EFFECT)
    dense_fsdp_shard_size: int | None = key(None, "A shard degree for dense parameters alone.", use=REFUSED)
    context_parallel: int = key(1, "Ranks that share one sequence.", use=REFUSED, minimum=1)
    context_parallel_method: str = key("colossal", "Context-parallel attention.", use=NO_EFFECT)
    context_parallel_async: bool = key(False, "Overlap of context-parallel communication.", use=NO_EFFECT)
    ulysses_degree_in_cp: int | None = key(None, "Ulysses part of the context-parallel degree.", use=NO_EFFECT)
    context_parallel_mask_type: str = key("causal", "Mask of context-parallel attention.", use=NO_EFFECT)
    pipeline_parallel: int = key(1, "Pipeline stages.", use=REFUSED, minimum=1)
    pipeline_parallel_layers_per_stage: tuple[object, ...] | str | None = key(
        "auto", "Layers of each stage.", use=NO_EFFECT
    )
    pipeline_parallel_schedule: str = key("1f1b", "Order of a stage's micro-batches.", use=NO_EFFECT)
    pipeline_parallel_microbatch_size: int = key(1, "Overwritten with the accumulation steps.", use=NO_EFFECT)
    pipeline_parallel_interleave_num: int = key(1, "Virtual stages per rank.", use=NO_EFFECT)
    pipeline_parallel_overlap_p2p: bool = key(False, "Overlap sends with compute.", use=NO_EFFECT)
    pipeline_parallel_overlap_b_f: bool = key(False, "Overlap backward with forward.", use=NO_EFFECT)
    pipeline_parallel_enable_dxdw_split: bool = key(False, "Split input and weight gradients.", use=NO_EFFECT)
    pipeline_parallel_p2p_transport: str = key("plain", "Transport between stages.", use=NO_EFFECT)
    enable_mc2: bool = key(False, "Fused matmul and communication on Ascend.", use=NO_EFFECT)
    enable_loss_parallel: bool = key(False, "Vocabulary-parallel loss; msrt's always is.", use=NO_EFFECT)
    npu_nums_per_device: int = key(8, "Devices of one host.", use=NO_EFFECT, minimum=1)
    expert_parallel_async_d2h: bool = key(False, "Copy token counts asynchronously.", use=NO_EFFECT, since="2.1")
    expert_parallel_use_safe_tokens: bool = key(True, "Bound on tokens per expert.", use=NO_EFFECT, since="2.1")


@dataclass(frozen=True, slots=True)
class Optimizer:
    """The optimizer (manual section 3). Open: further keys go to the optimizer class."""

    OPEN: ClassVar[bool] = True

    type: str = key("AdamW", "Optimizer class.", manual="3.1", choices=("AdamW", "Muon"))
    betas: tuple[float, float] = key(
        (0.9, 0.95),
        "Decay rates of the first and second moment.",
        manual="3.1",
        minimum=0,
        maximum=1,
        no_integer=True,
    )
    eps: float = key(1e-8, "Added to the root of the second moment.", manual="3.1", minimum=0, no_integer=True)
    weight_decay: float = key(
        0.01, "Decoupled decay of matrices; 1-D parameters have none.", manual="3.1", minimum=0, no_integer=True
    )
    weight_decay_include: tuple[str, ...] | None = key(None, "Parameters that decay whatever else says.")
    weight_decay_exclude: tuple[str, ...] | None = key(None, "Parameters that do not decay.")
    momentum: float = key(0.95, "Muon: decay of the momentum of matrices.", minimum=0, maximum=1, types=("Muon",))
    nesterov: bool = key(True, "Muon: look one step of momentum ahead.", types=("Muon",))
    ns_steps: int = key(5, "Muon: Newton-Schulz iterations.", minimum=1, types=("Muon",))
    matched_adamw_rms: float = key(
        0.2, "Muon: root mean square of a matrix's update, in learning rates.", minimum=0, types=("Muon",)
    )
    adamw_betas: tuple[float, float] | None = key(
        None, "Muon: betas of the parameters that AdamW updates; betas when left out.", types=("Muon",)
    )
    adamw_eps: float | None = key(
        None, "Muon: eps of the parameters that AdamW updates; eps when left out.", minimum=0, types=("Muon",)
    )


@dataclass(frozen=True, slots=True)
class Recompute:
    """Which activations are computed again in backward (manual section 6)."""

    mode: str = key("None", "What is recomputed.", manual="6.1", choices=("None", "full", "select"))
    full_recompute_layer: LayerRanges | None = key(None, "Layers recomputed whole.", manual="6.1", layers=True)
    select_module: dict[str, LayerRanges] | None = key(
        None, "Regular expression on module paths to layers.", manual="6.1", layers=True
    )
    exclude_op: object = key(None, "Operations kept from recomputation.", use=REFUSED)


@dataclass(frozen=True, slots=True)
class RecomputeComm:
    """Which results of communication are fetched again in backward (manual section 7)."""

    enable: bool = key(False, "Recompute communication.", manual="7.1")
    select_module: dict[str, LayerRanges] | None = key(
        None, "Regular expression on communication paths to layers.", manual="7.1", layers=True
    )


@dataclass(frozen=True, slots=True)
class GPTDatasetConfig:
    """The samples of a Megatron dataset (manual section 8.1, dataloader.config)."""

    OPEN: ClassVar[bool] = True

    split: str | None = key(None, "Weights of train, validation and test.", manual="8.1")
    seq_length: int = key(4096, "Tokens of a sample.", manual="8.1", minimum=1)
    eod_mask_loss: bool = key(False, "Leave end-of-document labels out of the loss (as Megatron does).", manual="8.1")
    reset_position_ids: bool = key(False, "Positions start again after an end of document.", manual="8.1")
    create_attention_mask: bool = key(True, "Make an attention mask column.", manual="8.1")
    reset_attention_mask: bool = key(False, "Tokens do not see earlier documents.", manual="8.1")
    create_compressed_eod_mask: bool = key(False, "Make the column actual_seq_len instead of a mask.", manual="8.1")
    eod_pad_length: int = key(
        128, "Length of actual_seq_len.", manual="8.1", minimum=1, aliases=("compressed_eod_mask_length",)
    )
    eod: int = key(-1, "Token id of the end of a document.", manual="8.1")
    pad: int = key(-1, "Token id of padding; -1 for none.", manual="8.1")
    data_path: tuple[str | int | float, ...] | str | None = key(
        None, "Weight, path prefix, weight, path prefix, …", manual="8.1"
    )
    seed: int = key(1234, "Seed of the sample order.", minimum=0, maximum=4294967295)
    num_dataset_builder_threads: int = key(1, "Threads that build sample indices.", use=NO_EFFECT, minimum=1)


@dataclass(frozen=True, slots=True)
class Dataloader:
    """Where samples come from (manual section 8.1). Open: further keys go to the loader class."""

    OPEN: ClassVar[bool] = True

    type: str | None = key(None, "Loader class.", manual="8.1", required=True)
    datasets_type: str = key("GPTDataset", "Dataset class of the Megatron loader.", manual="8.1")
    sizes: tuple[int, ...] | None = key(None, "Samples for train, validation and test.", manual="8.1", minimum=0)
    config: GPTDatasetConfig = key(GPTDatasetConfig(), "How samples are cut from the corpus.", manual="8.1")
    column_names: tuple[str, ...] = key(("input_ids", "labels"), "Columns, in order.", manual="8.1")
    shuffle: bool = key(False, "Shuffle the samples again.", manual="8.1")
    python_multiprocessing: bool = key(False, "Load in processes instead of threads.", manual="8.1")
    dataset_dir: str | None = key(None, "MindDataset: files of the data set.", use=REFUSED)
    load_func: str | None = key(None, "HFDataLoader: function that loads the data.", use=REFUSED)
    path: str | None = key(None, "HFDataLoader: data set or file format.", use=REFUSED)
    data_files: object = key(None, "HFDataLoader: files of the data set.", use=REFUSED)
    split: str | None = key(None, "HFDataLoader: part of the data set.", use=REFUSED)
    handler: tuple[dict[str, object], ...] | None = key(None, "HFDataLoader: steps from text to samples.", use=REFUSED)
    create_attention_mask: bool | None = key(None, "HFDataLoader: make an attention mask column.", use=REFUSED)
    create_compressed_eod_mask: bool | None = key(None, "HFDataLoader: make the column actual_seq_len.", use=REFUSED)
    compressed_eod_mask_length: int | None = key(None, "HFDataLoader: length of actual_seq_len.", use=REFUSED)
    use_broadcast_data: bool | None = key(None, "HFDataLoader: one rank reads for all.", use=REFUSED)


@dataclass(frozen=True, slots=True)
class TrainDataset:
    """The training data (manual section 8)."""

    dataloader: Dataloader = key(Dataloader(), "Where samples come from.", manual="8.1")
    drop_remainder: bool = key(True, "Drop the last incomplete global batch.", manual="8.1")
    num_parallel_workers: int = key(8, "Loading threads or processes.", manual="8.1", minimum=1)
    prefetch_size: int = key(1, "Micro-batches that each worker makes ahead of training.", manual="8.1", minimum=0)
    numa_enable: bool = key(False, "Bind loading to NUMA nodes.", manual="8.1", use=NO_EFFECT)
    use_distribute_dataset: bool = key(False, "Only some ranks read data.", use=NO_EFFECT)
    balance_enabled: bool = key(False, "Balance tokens over ranks.", use=REFUSED, since="2.1")


@dataclass(frozen=True, slots=True)
class HealthCheckpoint:
    """Parsed by MindFormers and never read."""

    embedding_local_norm_threshold: float = key(100.0, "Never read.", use=NO_EFFECT, dead=True)
    global_norm_skip_threshold: float = key(100.0, "Never read.", use=NO_EFFECT, dead=True)
    global_norm_skip_time: int = key(10, "Never read.", use=NO_EFFECT, dead=True)


@dataclass(frozen=True, slots=True)
class TrainState:
    """Extra logged numbers."""

    local_norm: bool | str | tuple[str, ...] = key("", "Log gradient norms per parameter.", use=NO_EFFECT)
    local_loss: bool = key(False, "Log each rank's loss.", use=NO_EFFECT)
    device_norm: bool | str | tuple[str, ...] = key(False, "Log each rank's gradient norm.", use=NO_EFFECT)
    device_loss: bool = key(False, "Log each rank's loss.", use=NO_EFFECT)


@dataclass(frozen=True, slots=True)
class Tensorboard:
    """TensorBoard output; 2.1 renamed the keys."""

    output_dir: str = key("", "Folder of the events.", since="2.1", renamed="tensorboard_dir")
    log_interval: int = key(1, "Steps between two events.", since="2.1", minimum=1, renamed="tensorboard_log_interval")
    queue_size: int = key(
        1000, "Events held back.", use=NO_EFFECT, since="2.1", minimum=1, renamed="tensorboard_queue_size"
    )
    tensorboard_dir: str = key("", "Folder of the events.", until="2.0", dead=True, renamed="output_dir")
    tensorboard_log_interval: int = key(1, "Steps between two events.", until="2.0", dead=True, renamed="log_interval")
    tensorboard_queue_size: int = key(
        1000, "Events held back.", use=NO_EFFECT, until="2.0", dead=True, renamed="queue_size"
    )


@dataclass(frozen=True, slots=True)
class MoeMonitor:
    """Logged token counts of experts."""

    save_tokens_per_expert_interval: int | None = key(None, "Steps between two counts.", use=NO_EFFECT, minimum=1)
    target_layers: int | tuple[int, ...] | None = key(None, "Layers that are counted.", use=NO_EFFECT, minimum=0)


@dataclass(frozen=True, slots=True)
class Monitor:
    """Extra logging of MindFormers; msrt always writes metrics.jsonl."""

    health_checkpoint: HealthCheckpoint = key(HealthCheckpoint(), "Never read.", use=NO_EFFECT)
    train_state: TrainState = key(TrainState(), "Extra logged numbers.", use=NO_EFFECT)
    tensorboard: Tensorboard = key(Tensorboard(), "TensorBoard output.")
    moe_monitor: MoeMonitor = key(MoeMonitor(), "Token counts of experts.", use=NO_EFFECT)


@dataclass(frozen=True, slots=True)
class Context:
    """The device context."""

    mode: int = key(1, "1 is PyNative; the launcher's --mode decides.", use=NO_EFFECT)
    max_device_memory: str = key("59GB", "Memory MindSpore may take.", use=NO_EFFECT, dead=True)
    device_target: str = key("Ascend", "Device.", use=NO_EFFECT, dead=True)


@dataclass(frozen=True, slots=True)
class Profiler:
    """MindSpore's profiler."""

    enable_profiling: bool = key(False, "Profile some steps.", use=NO_EFFECT)
    start_step: int = key(1, "First profiled step.", use=NO_EFFECT, minimum=1)
    end_step: int = key(1, "Last profiled step.", use=NO_EFFECT, minimum=1)
    output_path: str | None = key(None, "Folder of the profile.", use=NO_EFFECT)
    profiler_rank: tuple[int, ...] | None = key(None, "Profiled ranks.", use=NO_EFFECT)
    profiler_level: int = key(0, "How much is recorded.", use=NO_EFFECT)
    mstx: bool = key(False, "Record markers.", use=NO_EFFECT)
    profile_memory: bool = key(False, "Record memory.", use=NO_EFFECT)
    profile_cpu: bool = key(True, "Record the host.", use=NO_EFFECT)
    with_stack: bool = key(True, "Record call stacks.", use=NO_EFFECT)


@dataclass(frozen=True, slots=True)
class Swap:
    """Activations moved to host memory."""

    enable: bool = key(False, "Swap activations.", use=REFUSED)
    default_prefetch: int = key(1, "Layers fetched ahead.", use=NO_EFFECT, minimum=1)
    layer_swap: object = key(None, "Swapped layers.", use=NO_EFFECT)
    op_swap: object = key(None, "Swapped operations.", use=NO_EFFECT)


@dataclass(frozen=True, slots=True)
class LoraConfig:
    """Low-rank adapters."""

    target_modules: str = key("", "Adapted modules.", use=REFUSED)
    exclude_layers: str | None = key(None, "Layers left alone.", use=NO_EFFECT)
    lora_rank: int = key(8, "Rank.", use=NO_EFFECT, minimum=1)
    lora_alpha: int = key(16, "Scale.", use=NO_EFFECT, minimum=1)
    lora_dropout: float = key(0.0, "Dropout.", use=NO_EFFECT, minimum=0)
    lora_a_std: float = key(0.01, "Spread of the first matrix.", use=NO_EFFECT, minimum=0)
    lora_b_std: float = key(0.0, "Spread of the second matrix.", use=NO_EFFECT, minimum=0)


@dataclass(frozen=True, slots=True)
class Inference:
    """Text generation with run_mode predict."""

    max_new_tokens: int = key(50, "Tokens generated.", use=NO_EFFECT, since="2.1")
    batch_size: int = key(8, "Prompts at once.", use=NO_EFFECT, since="2.1")
    output: str = key("inference_result.jsonl", "Where results go.", use=NO_EFFECT, since="2.1")
    input_data: object = key(None, "Prompts.", use=NO_EFFECT, since="2.1")


@dataclass(frozen=True, slots=True)
class Config:
    """A whole pynative.yaml. The readers keep unknown top-level sections in silence; msmigrate and msrt do not."""

    checkpoint: Checkpoint = key(Checkpoint(), "Saving and loading.", manual="1")
    training: Training = key(Training(), "Length, batch and randomness.", manual="2")
    optimizer: Optimizer = key(Optimizer(), "The optimizer.", manual="3")
    lr_scheduler: LrScheduler = key(LrScheduler(), "The learning rate.", manual="4")
    parallelism: Parallelism = key(Parallelism(), "How ranks share the work.", manual="5")
    recompute: Recompute = key(Recompute(), "Activations computed again.", manual="6")
    recompute_comm: RecomputeComm = key(RecomputeComm(), "Communication done again.", manual="7")
    train_dataset: TrainDataset = key(TrainDataset(), "The training data.", manual="8")
    model: Model = key(Model(), "The model's shape.", manual="9")
    run_mode: str = key("train", "train or predict.", use=REFUSED, since="2.1", choices=("train", "predict"))
    monitor: Monitor = key(Monitor(), "Extra logging.", use=NO_EFFECT)
    context: Context = key(Context(), "The device context.", use=NO_EFFECT)
    profiler: Profiler = key(Profiler(), "MindSpore's profiler.", use=NO_EFFECT)
    swap: Swap = key(Swap(), "Activations moved to host memory.", use=NO_EFFECT)
    callbacks: tuple[dict[str, object], ...] | None = key(None, "Classes called during training.", use=NO_EFFECT)
    lora_config: LoraConfig | None = key(None, "Low-rank adapters.", use=REFUSED)
    inference: Inference | None = key(None, "Text generation.", use=NO_EFFECT, since="2.1")
