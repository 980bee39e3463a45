"""The `model:` section of a pynative.yaml (manual section 9): the shape of every model family, by canonical names.

A default of None means that the family's own default holds (`family_defaults.py`) or that the feature is off.
`aliases` are other names that graph files and MindFormers use for the same value.
"""

from dataclasses import dataclass
from typing import ClassVar

from msmigrate.pynative.keys import Use, key

NO_EFFECT = Use.NO_EFFECT
REFUSED = Use.REFUSED

QWEN = ("qwen3", "qwen3_moe")
Dtype = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class Model:
    """Shape, precision and routing of a model. Open: the readers warn about unknown keys and ignore them."""

    OPEN: ClassVar[bool] = True

    # Identity
    model_type: str | None = key(None, "Model family, as in a Hugging Face config.json.", manual="9.1", required=True)
    architectures: str | None = key(None, "Model class; one word, not a list.", manual="9.1", required=True)

    # Shape
    vocab_size: int | None = key(None, "Rows of the embedding.", manual="10", minimum=1)
    seq_length: int | None = key(None, "Tokens of a sample.", manual="10", minimum=1)
    hidden_size: int | None = key(None, "Width of the residual stream.", manual="10", minimum=1)
    intermediate_size: int | None = key(
        None, "Width of the dense MLP.", manual="10", minimum=1, converted=("ffn_hidden_size",)
    )
    num_hidden_layers: int | None = key(
        None,
        "Decoder layers, MTP layers not counted.",
        manual="10",
        minimum=1,
        aliases=("n_layer", "num_decoder_layers"),
        converted=("num_layers",),
    )
    num_attention_heads: int | None = key(None, "Query heads.", manual="10", minimum=1, aliases=("num_heads", "n_head"))
    num_key_value_heads: int | None = key(
        None, "Key and value heads.", minimum=1, aliases=("n_kv_heads",), converted=("num_query_groups",)
    )
    head_dim: int | None = key(None, "Width of a head.", minimum=1, converted=("kv_channels",))
    max_position_embeddings: int | None = key(
        None,
        "Longest sequence; under YaRN MindFormers takes it as the length before scaling.",
        manual="10",
        minimum=1,
        aliases=("max_position_embedding",),
    )
    hidden_act: str | None = key(None, "Activation of the MLP.", manual="10", aliases=("activation_func",))
    gated_linear_unit: bool | None = key(None, "SwiGLU instead of a plain MLP.", manual="10")
    add_bias_linear: bool | None = key(None, "Biases in linear layers.", manual="10")
    attention_bias: bool | None = key(
        None, "Biases of query, key and value.", aliases=("qkv_has_bias",), converted=("add_qkv_bias",)
    )
    mlp_bias: bool | None = key(None, "Biases in the MLPs (Llama).", use=REFUSED)
    tie_word_embeddings: bool | None = key(None, "The head shares the embedding's weight.")
    untie_embeddings_and_output_weights: bool | None = key(None, "The opposite of tie_word_embeddings.")
    normalization: str | None = key(None, "Norm of the blocks; RMSNorm.", use=NO_EFFECT)
    rms_norm_eps: float | None = key(
        None,
        "Epsilon of RMSNorm.",
        manual="10",
        minimum=0,
        aliases=("layer_norm_eps",),
        converted=("layernorm_epsilon",),
    )
    qk_layernorm: bool | None = key(
        None, "Norms on queries and keys (MLA: on the latents).", manual="10", aliases=("use_qk_norm",)
    )
    initializer_range: float | None = key(
        None, "Spread of the initial weights.", manual="10", minimum=0, converted=("init_method_std",)
    )

    # Multi-head latent attention
    multi_latent_attention: bool | None = key(None, "MLA.", manual="10")
    mla_qkv_concat: bool | None = key(None, "One matrix for the latents; a layout choice.", manual="10", use=NO_EFFECT)
    q_lora_rank: int | None = key(
        None, "Rank of the query latent; null for none.", manual="10", minimum=1, null_is_a_value=True
    )
    kv_lora_rank: int | None = key(None, "Rank of the key-value latent.", manual="10", minimum=1)
    qk_rope_head_dim: int | None = key(
        None, "Rotated part of a query or key head.", manual="10", minimum=1, converted=("qk_pos_emb_head_dim",)
    )
    qk_nope_head_dim: int | None = key(
        None, "Unrotated part of a query or key head.", manual="10", minimum=1, converted=("qk_head_dim",)
    )
    v_head_dim: int | None = key(None, "Width of a value head.", manual="10", minimum=1)

    # Rotary positions
    position_embedding_type: str | None = key(None, "rope or yarn.", manual="10", aliases=("extend_method",))
    rope_theta: float | None = key(None, "Base of the frequencies.", manual="10", minimum=1, converted=("rotary_base",))
    scaling_factor: float | None = key(
        None, "YaRN factor (the manual's name).", manual="10", minimum=1, reader_name="rotary_scaling_factor"
    )
    rotary_scaling_factor: float | None = key(None, "YaRN factor (the name MindFormers reads).", minimum=1)
    beta_fast: float | None = key(None, "YaRN: rotations above which a frequency is kept.", manual="10", minimum=0)
    beta_slow: float | None = key(None, "YaRN: rotations below which a frequency is divided.", manual="10", minimum=0)
    mscale: float | None = key(None, "YaRN: growth of the softmax scale.", manual="10", minimum=0)
    mscale_all_dim: float | None = key(None, "YaRN: divisor of the rotary amplitude.", manual="10", minimum=0)
    rope_scaling: dict[str, object] | None = key(None, "YaRN in Hugging Face's form; overrides the flat keys.")
    rope_type: str | None = key(None, "Kind of rotary scaling in Hugging Face's form.", use=NO_EFFECT)
    original_max_position_embeddings: int | None = key(None, "Length before YaRN.", minimum=1)
    partial_rotary_factor: float | None = key(
        None, "Rotated part of a head.", use=REFUSED, minimum=0, maximum=1, aliases=("rotary_percent",), neutral=(1.0,)
    )
    rotary_interleaved: bool | None = key(None, "Lane order of the rotation.", use=NO_EFFECT)
    rotary_cos_format: int | None = key(None, "Layout of the cosine table.", use=NO_EFFECT)
    rotary_seq_len_interpolation_factor: float | None = key(None, "Linear interpolation.", use=REFUSED, neutral=(1.0,))
    use_rope_scaling: bool | None = key(None, "Llama 3 scaling.", use=REFUSED)

    # Dropout
    attention_dropout: float | None = key(
        None, "Dropout of attention weights.", manual="10", minimum=0, maximum=1, no_integer=True
    )
    hidden_dropout: float | None = key(
        None, "Dropout of block outputs.", manual="10", minimum=0, maximum=1, no_integer=True
    )

    # Precision
    params_dtype: str = key(
        "float32", "Type of stored parameters.", manual="10", choices=Dtype, aliases=("param_init_type",)
    )
    compute_dtype: str = key("bfloat16", "Type of matrix products.", manual="10", choices=Dtype)
    layernorm_compute_dtype: str = key(
        "float32", "Type of norms.", manual="10", choices=Dtype, aliases=("layernorm_compute_type",)
    )
    softmax_compute_dtype: str = key(
        "float32", "Type of attention's softmax.", manual="10", choices=Dtype, aliases=("softmax_compute_type",)
    )
    rotary_dtype: str = key("float32", "Type of rotary positions.", manual="10", choices=Dtype)
    router_dense_type: str | None = key(
        None, "Type of the router (the manual's name).", manual="10", choices=Dtype, reader_name="moe_router_dtype"
    )
    moe_router_dtype: str | None = key(None, "Type of the router (the name MindFormers reads).", choices=Dtype)
    fp32_residual_connection: bool | None = key(None, "Residual stream in float32.", use=NO_EFFECT)
    residual_dtype: str | None = key(None, "Type of the residual stream.", use=NO_EFFECT, choices=Dtype)
    embedding_params_dtype: str | None = key(None, "Type of the embedding.", use=NO_EFFECT, choices=Dtype)
    attention_softmax_in_fp32: bool | None = key(None, "Softmax in float32.", use=NO_EFFECT)
    fp16_lm_cross_entropy: bool | None = key(None, "Cross entropy in float16; msrt's is float32.", use=NO_EFFECT)

    # Mixture of experts
    first_k_dense_replace: int | None = key(None, "Leading layers with a dense MLP.", manual="10", minimum=0)
    moe_layer_freq: int | tuple[int, ...] | None = key(None, "Every how many layers one has experts.")
    n_routed_experts: int | None = key(
        None,
        "Routed experts.",
        manual="10",
        minimum=1,
        aliases=("num_experts", "expert_num"),
        converted=("num_moe_experts",),
    )
    num_experts_per_tok: int | None = key(
        None, "Experts of a token (top-k).", manual="10", minimum=1, converted=("moe_router_topk",)
    )
    n_shared_experts: int | None = key(
        None, "Experts that every token passes.", manual="10", minimum=0, converted=("shared_expert_num",)
    )
    moe_intermediate_size: int | None = key(
        None, "Width of a routed expert.", manual="10", minimum=1, converted=("moe_ffn_hidden_size",)
    )
    moe_shared_expert_intermediate_size: int | None = key(
        None, "Width of the shared experts together.", manual="10", minimum=1
    )
    use_shared_expert_gating: bool | None = key(None, "A gate on the shared experts.", use=REFUSED)
    scoring_func: str | None = key(
        None,
        "Scores from router logits (the manual's name).",
        manual="10",
        choices=("sigmoid", "softmax"),
        reader_name="moe_router_score_function",
    )
    moe_router_score_function: str | None = key(
        None, "Scores from router logits (the name MindFormers reads).", choices=("sigmoid", "softmax", "sqrtsoftplus")
    )
    moe_router_pre_softmax: bool | None = key(None, "Softmax before top-k.")
    norm_topk_prob: bool | None = key(None, "Weights of the chosen experts sum to one.", manual="10")
    routed_scaling_factor: float | None = key(
        None,
        "Factor on the routed experts' output.",
        manual="10",
        minimum=0,
        converted=("moe_router_topk_scaling_factor",),
    )
    n_group: int | None = key(
        None, "Expert groups; 0 for none.", manual="10", minimum=0, converted=("moe_router_num_groups",)
    )
    topk_group: int | None = key(
        None, "Groups a token may use.", manual="10", minimum=0, converted=("moe_router_group_topk",)
    )
    topk_method: str | None = key(None, "Name of the routing method.", use=NO_EFFECT)
    moe_router_enable_expert_bias: bool | None = key(None, "A bias steers the choice of experts.", manual="10")
    moe_router_bias_update_rate: float | None = key(None, "Step of the expert bias.", manual="10", minimum=0)
    moe_router_load_balancing_type: str | None = key(
        None,
        "Load-balancing loss.",
        manual="10",
        choices=("seq_aux_loss", "aux_loss", "global_aux_loss", "gbs_aux_loss", "sub_seq_aux_loss"),
    )
    moe_aux_loss_coeff: float | None = key(None, "Weight of the load-balancing loss.", manual="10", minimum=0)
    router_aux_loss_coef: float | None = key(
        None, "Deleted by the readers, which take moe_aux_loss_coeff.", use=NO_EFFECT, minimum=0
    )
    moe_z_loss_coeff: float | None = key(None, "Weight of the router's z-loss.", use=REFUSED, minimum=0)
    moe_token_dispatcher_type: str | None = key(
        None,
        "How tokens reach their experts; the readers look under parallelism.",
        manual="10",
        choices=("alltoall", "alltoall_deredundancy", "allgather", "alltoall_zero_redundancy"),
    )
    moe_token_drop_policy: str | bool | None = key(
        None, "Tokens dropped over capacity; no layer drops any.", manual="10", use=NO_EFFECT
    )
    moe_expert_capacity_factor: float | None = key(None, "Capacity of an expert.", use=NO_EFFECT)
    use_pad_tokens: bool | None = key(None, "Pad tokens per expert; no layer reads it.", manual="10", use=NO_EFFECT)
    moe_grouped_gemm: bool | None = key(None, "One grouped product for all experts.", manual="10", use=NO_EFFECT)
    moe_permute_fusion: bool | None = key(None, "Fused permutation.", use=NO_EFFECT)
    moe_router_fusion: bool | None = key(None, "Fused router.", use=NO_EFFECT)
    moe_apply_probs_on_input: bool | None = key(None, "Weights on the experts' input.", use=REFUSED)
    moe_router_force_expert_balance: bool | None = key(None, "Route evenly, whatever the scores.", use=REFUSED)
    moe_shared_expert_overlap: bool | None = key(None, "Overlap of the shared experts.", use=NO_EFFECT)
    print_expert_load: bool | None = key(None, "Log token counts; metrics.jsonl always has them.", use=NO_EFFECT)
    decoder_sparse_step: int | None = key(
        None, "Every how many layers one has experts (Qwen).", minimum=1, families=QWEN[1:]
    )
    mlp_only_layers: tuple[int, ...] | None = key(None, "Layers with a dense MLP (Qwen).", families=QWEN[1:])
    output_router_logits: bool | None = key(None, "Return router logits.", use=NO_EFFECT, families=QWEN[1:])

    # Multi-token prediction
    num_nextn_predict_layers: int | None = key(
        None, "MTP layers.", manual="10", minimum=0, maximum=1, aliases=("mtp_depth",), converted=("mtp_num_layers",)
    )
    mtp_loss_scaling_factor: float | None = key(
        None, "Weight of the MTP loss.", manual="10", minimum=0, converted=("mtp_loss_factor",)
    )

    # Loss
    calculate_per_token_loss: bool | None = key(None, "Sum of token losses over all tokens of a step.", use=REFUSED)
    ignore_token_id: int | None = key(None, "Label left out of the loss; -100.", use=NO_EFFECT)
    chunk_loss_num: int | None = key(None, "Pieces of the loss.", use=NO_EFFECT)

    # Fusions, layouts and other settings that change no number
    use_flash_attention: bool | None = key(None, "Fused attention; the same numbers.", manual="10", use=NO_EFFECT)
    use_attn_mask_compression: bool | None = key(None, "Compressed causal mask.", use=NO_EFFECT)
    use_eod_attn_mask_compression: bool | None = key(None, "Compressed document mask.", use=NO_EFFECT)
    apply_rope_fusion: bool | None = key(None, "Fused rotary positions.", use=NO_EFFECT)
    bias_swiglu_fusion: bool | None = key(None, "Fused SwiGLU.", use=NO_EFFECT)
    bias_dropout_fusion: bool | None = key(None, "Fused dropout.", use=NO_EFFECT)
    use_fused_ops_topkrouter: bool | None = key(None, "Fused router.", use=NO_EFFECT)
    use_fused_mla: bool | None = key(None, "Fused MLA.", use=NO_EFFECT)
    fused_norm: bool | None = key(None, "Fused norm.", use=NO_EFFECT)
    qkv_concat: bool | None = key(None, "One matrix for query, key and value; a layout choice.", use=NO_EFFECT)
    use_contiguous_weight_layout_attention: bool | None = key(None, "Weight layout.", use=NO_EFFECT)
    use_contiguous_weight_layout: bool | None = key(None, "Weight layout.", use=NO_EFFECT)
    use_interleaved_weight_layout_mlp: bool | None = key(None, "Weight layout.", use=NO_EFFECT)
    input_sliced_sig: bool | None = key(None, "Samples are already seq_length long; PyNative's are.", use=NO_EFFECT)
    disable_lazy_inline: bool | None = key(None, "Graph compilation.", use=NO_EFFECT)
    input_layout: str | None = key(None, "Layout of attention inputs.", use=NO_EFFECT)
    sparse_mode: int | None = key(None, "Mask form of fused attention.", use=NO_EFFECT)
    use_attention_mask: bool | None = key(None, "A mask is passed.", use=NO_EFFECT)
    use_eod_reset: bool | None = key(None, "Document masks; train_dataset decides.", use=NO_EFFECT)
    mask_func_type: str | None = key(None, "How masks are applied.", use=NO_EFFECT)
    use_cache: bool | None = key(None, "Key-value cache of generation.", use=NO_EFFECT)
    use_past: bool | None = key(None, "Key-value cache of generation.", use=NO_EFFECT)
    batch_size: int | None = key(None, "Batch of generation.", use=NO_EFFECT)
    block_size: int | None = key(None, "Block of paged attention.", use=NO_EFFECT)
    num_blocks: int | None = key(None, "Blocks of paged attention.", use=NO_EFFECT)
    is_dynamic: bool | None = key(None, "Dynamic shapes of generation.", use=NO_EFFECT)
    bos_token_id: int | None = key(None, "First token of a text.", use=NO_EFFECT)
    eos_token_id: int | tuple[int, ...] | None = key(None, "Last token of a text.", use=NO_EFFECT)
    pad_token_id: int | None = key(None, "Padding token.", use=NO_EFFECT)
    actual_vocab_size: int | None = key(None, "Vocabulary before padding.", use=NO_EFFECT)
    print_separate_loss: bool | None = key(None, "Log the parts of the loss.", use=NO_EFFECT)
    track_max_attention_logit: bool | None = key(None, "Log the largest attention logit.", use=NO_EFFECT)
    ep_size: int | None = key(None, "Deleted by the readers.", use=NO_EFFECT)
    torch_dtype: str | None = key(None, "Deleted by the readers.", use=NO_EFFECT, aliases=("dtype",))
    transformers_version: str | None = key(None, "Deleted by the readers.", use=NO_EFFECT)
    auto_map: object = key(None, "Deleted by the readers.", use=NO_EFFECT)
    max_window_layers: int | None = key(
        None, "Sliding window (Qwen); needs use_sliding_window.", use=NO_EFFECT, families=QWEN
    )
    sliding_window: int | None = key(
        None, "Sliding window (Qwen); needs use_sliding_window.", use=NO_EFFECT, families=QWEN
    )
    use_sliding_window: bool | None = key(None, "Sliding-window attention.", use=REFUSED, families=QWEN)
    layer_types: tuple[str, ...] | None = key(
        None, "Attention type of each layer.", use=REFUSED, neutral=("full_attention",)
    )
    window_size: tuple[int, ...] | None = key(None, "Sliding-window attention.", use=REFUSED)

    # Architectures msrt does not have
    apply_query_key_layer_scaling: bool | None = key(None, "Scale attention by layer.", use=REFUSED)
    apply_residual_connection_post_layernorm: bool | None = key(None, "Residual after the norm.", use=REFUSED)
    sandwich_norm: bool | None = key(None, "Norms on both sides of a block.", use=REFUSED)
    softmax_scale: float | None = key(None, "Fixed attention scale.", use=REFUSED)
    use_alibi_mask: bool | None = key(None, "ALiBi positions.", use=REFUSED)
    enable_hyper_connections: bool | None = key(None, "Hyper-connections.", use=REFUSED)
    experimental_attention_variant: str | None = key(None, "Sparse attention.", use=REFUSED)
    pet_config: dict[str, object] | None = key(None, "Low-rank adapters.", use=REFUSED)
    quantization_config: dict[str, object] | None = key(None, "Quantised weights.", use=REFUSED)
    # Accepted by the readers, decided by other sections in PyNative mode
    offset: object = key(None, "Layers moved between pipeline stages.", use=NO_EFFECT)
    pp_interleave_num: int | None = key(None, "Virtual pipeline stages.", use=NO_EFFECT)
