"""Legacy model classes: which of them compute what a PyNative family computes, and what each takes for an absent key.

Read from the signatures of MindFormers' configuration classes, releases 1.0 to 1.7 (the API pages of LlamaConfig; the
others from the model folders that shipped with a release). Keys that no training number depends on are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msmigrate.mapping.graph_file import MODEL_SECTION, GraphFile
from msmigrate.yaml.scalars import Value

SECTION = MODEL_SECTION


@dataclass(frozen=True, slots=True)
class Architecture:
    """A legacy configuration class with a PyNative counterpart.

    `reads` holds the keys that the class reads, with the value it takes when one is absent or null. `fixed` holds
    pynative keys that the class has no key for, with their value and the reason.
    """

    model_type: str
    networks: tuple[str, ...]
    """Values of `model.arch.type` that compute this."""
    reads: Mapping[str, Value]
    fixed: Mapping[str, tuple[Value, str]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    """Keys that the class cannot be made without."""


_PRECISION: Mapping[str, Value] = {
    "compute_dtype": "float16",
    "layernorm_compute_type": "float32",
    "softmax_compute_type": "float32",
    "rotary_dtype": "float32",
    "param_init_type": "float16",
}
_LLAMA: Mapping[str, Value] = {
    "seq_length": 2048,
    "hidden_size": 4096,
    "num_layers": 32,
    "num_heads": 32,
    "n_kv_heads": None,
    "max_position_embedding": None,
    "intermediate_size": None,
    "vocab_size": 32000,
    "multiple_of": 256,
    "ffn_dim_multiplier": None,
    "rms_norm_eps": 1e-5,
    "theta": 10000.0,
    **_PRECISION,
    "residual_dtype": None,
    "embedding_init_type": None,
    "qkv_has_bias": False,
    "attn_proj_has_bias": False,
    "extend_method": "None",
    "init_method_std": 0.01,
    "tie_word_embeddings": False,
    "calculate_per_token_loss": False,
}
_NO_YARN = "without YaRN the softmax scale has no extra factor; the readers' default factor is 40.0"

ARCHITECTURES: Mapping[str, Architecture] = {
    "LlamaConfig": Architecture("llama", ("LlamaForCausalLM",), _LLAMA),
    "InternLM2Config": Architecture(
        "llama",
        ("InternLM2ForCausalLM",),
        {
            **{key: value for key, value in _LLAMA.items() if key not in ("qkv_has_bias", "attn_proj_has_bias")},
            "n_kv_heads": 8,
            "intermediate_size": 14336,
            "vocab_size": 92544,
            "theta": 1000000.0,
        },
    ),
    "QwenConfig": Architecture(
        "llama",
        ("QwenForCausalLM",),
        {key: value for key, value in _LLAMA.items() if key not in ("qkv_has_bias", "attn_proj_has_bias")},
        {"attention_bias": (True, "QwenForCausalLM has biases on query, key and value")},
        required=("intermediate_size",),
    ),
    "DeepseekV3Config": Architecture(
        "deepseek_v3",
        ("DeepseekV3ForCausalLM",),
        {
            "seq_length": 2048,
            "hidden_size": 4096,
            "num_layers": 32,
            "num_heads": 32,
            "n_kv_heads": None,
            "max_position_embeddings": 32768,
            "intermediate_size": 18432,
            "kv_lora_rank": 512,
            "q_lora_rank": 1536,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "qk_nope_head_dim": 128,
            "vocab_size": 129280,
            "rms_norm_eps": 1e-6,
            "theta": 10000.0,
            **_PRECISION,
            "compute_dtype": "bfloat16",
            "param_init_type": "bfloat16",
            "init_method_std": 0.006,
            "qkv_has_bias": False,
            "extend_method": "YARN",
            "mtp_depth": 0,
            "mtp_loss_factor": 0.3,
            "return_extra_loss": True,
        },
        {
            "multi_latent_attention": (True, "DeepseekV3Config always means MLA"),
            "qk_layernorm": (True, "legacy MLA always has norms on its latents"),
            "scaling_factor": (1.0, _NO_YARN),
        },
    ),
}
"""Legacy configuration classes by name."""

MIXTURE: Mapping[str, Value] = {
    "expert_num": 1,
    "num_experts_chosen": 1,
    "shared_expert_num": 0,
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 1407,
    "routed_scaling_factor": 1.0,
    "norm_topk_prob": True,
    "n_group": 0,
    "topk_group": 0,
    "use_gating_sigmoid": False,
    "router_dense_type": "float32",
    "balance_via_topk_bias": False,
    "topk_bias_update_rate": 0.0,
}
"""What `moe_config` takes for an absent key."""

UNLIKE: Mapping[str, str] = {
    "ChatGLM2Config": "ChatGLM rotates half of each head only",
    "GLMConfig": "GLM reads its prompt in both directions, with two-dimensional positions",
    "GPT2Config": "GPT-2 has learned positions, LayerNorm and a plain GELU MLP",
    "BloomConfig": "BLOOM has ALiBi positions, LayerNorm and a plain GELU MLP",
    "PanguAlphaConfig": "PanGu-Alpha has learned positions, LayerNorm and a query layer on top",
    "T5Config": "T5 is an encoder with a decoder",
    "WizardCoderConfig": "WizardCoder has learned positions, LayerNorm and one key and value head with biases",
    "TelechatConfig": "TeleChat has switches for biases and scaling of its own, whose defaults are not known here",
    "DeepseekV2Config": "DeepSeek-V2 ranks groups of experts by their best score, deepseek_v3 by their two best",
    "WhisperConfig": "Whisper is an encoder of sound with a decoder",
    "CLIPConfig": "CLIP compares pictures with texts",
    "ViTConfig": "ViT classifies pictures",
}
"""Legacy configuration classes that no PyNative family computes, and why."""

UNLIKE_NETWORKS: Mapping[str, str] = {
    "Baichuan13BV2ForCausalLM": "Baichuan2-13B has ALiBi positions and a normalised head",
    "MixtralForCausalLM": "Mixtral has experts without norms on queries and keys, which no PyNative family has",
}
"""Networks that a known configuration class is used for, and that compute something else."""


def named(graph: GraphFile) -> str | None:
    """The configuration class that a file names."""
    value = graph.value(f"{SECTION}.type")
    return value if isinstance(value, str) else None


def counterpart(graph: GraphFile) -> Architecture | str:
    """What a legacy file's model is in PyNative mode, or a sentence on why it is nothing there."""
    config, network = named(graph), graph.value("model.arch.type")
    if config is None:
        return f"a legacy file names its model in `{SECTION}.type`, and this one names none"
    found = ARCHITECTURES.get(config)
    if found is None:
        why = UNLIKE.get(config, "its arithmetic is not known here")
        return f"{config} is a legacy model without PyNative counterpart: {why}"
    if network is not None and network not in found.networks:
        why = UNLIKE_NETWORKS.get(str(network), "its arithmetic is not known here")
        return f"{network} is a legacy model without PyNative counterpart: {why}"
    if found.model_type == "llama" and graph.integer("moe_config.expert_num", 1) > 1:
        return (
            f"moe_config.expert_num is {graph.integer('moe_config.expert_num', 1)}, and no PyNative family has "
            "experts in a Llama block (qwen3_moe has norms on queries and keys, deepseek_v3 other attention)"
        )
    return found
