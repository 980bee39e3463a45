"""DeepSeek-V3 once more, in plain float64 numpy, token by token: what the fast model is compared with.

Written from the paper's equations and MindFormers' arithmetic; of the package it uses the config's numbers only.
"""

import math

import numpy as np
from numpy.typing import NDArray

from msrt.models.deepseek_v3.config import DeepSeekV3Config

F64 = NDArray[np.float64]
Weights = dict[str, F64]


def softmax(x: F64) -> F64:
    e: F64 = np.exp(x - x.max())
    shares: F64 = e / e.sum()
    return shares


def norm(x: F64, weight: F64, eps: float) -> F64:
    normed: F64 = x / np.sqrt((x * x).mean() + eps) * weight
    return normed


def silu(x: F64) -> F64:
    return x / (1 + np.exp(-x))


def frequencies(config: DeepSeekV3Config) -> list[float]:
    """Angle per position of each rotated pair, straight from the formulas of YaRN."""
    spec, yarn = config.rotary, config.rotary.yarn
    plain = [spec.theta ** (-2 * j / spec.dim) for j in range(spec.dim // 2)]
    if yarn is None:
        return plain

    def lane(turns: float) -> float:
        return spec.dim * math.log(yarn.original_length / (turns * 2 * math.pi)) / (2 * math.log(spec.theta))

    low, high = max(math.floor(lane(yarn.beta_fast)), 0), min(math.ceil(lane(yarn.beta_slow)), spec.dim - 1)
    width = (high - low) or 0.001
    slow = [min(max((j - low) / width, 0.0), 1.0) for j in range(spec.dim // 2)]
    return [f / yarn.factor * s + f * (1 - s) for f, s in zip(plain, slow, strict=True)]


def rotate(x: F64, position: int, config: DeepSeekV3Config) -> F64:
    first, second = [], []
    for j, frequency in enumerate(frequencies(config)):
        angle = position * frequency * config.rotary.angle_scale
        c, s = math.cos(angle) * config.rotary.amplitude, math.sin(angle) * config.rotary.amplitude
        a, b = x[2 * j], x[2 * j + 1]
        first.append(a * c - b * s)
        second.append(b * c + a * s)
    return np.array(first + second)


def attention(x: F64, w: Weights, config: DeepSeekV3Config, hidden: NDArray[np.bool_] | None) -> F64:
    """Self-attention of one sequence (seq, hidden); `hidden` (seq, seq), True where a query must not look."""
    spec, seq = config.attention, len(x)
    rope, nope, heads = spec.qk_rope_head_dim, spec.qk_nope_head_dim, spec.num_attention_heads
    queries, keys, values = [], [], []
    for position in range(seq):
        mixed = w["linear_qkv.weight"] @ x[position]
        cut = len(mixed) - spec.kv_lora_rank - rope
        query, latent, rotary_key = mixed[:cut], mixed[cut : cut + spec.kv_lora_rank], mixed[-rope:]
        if spec.latent_norm_eps is not None:
            latent = norm(latent, w["k_layernorm.weight"], spec.latent_norm_eps)
        if spec.q_lora_rank is not None:
            if spec.latent_norm_eps is not None:
                query = norm(query, w["q_layernorm.weight"], spec.latent_norm_eps)
            query = w["linear_qb.weight"] @ query
        query = query.reshape(heads, nope + rope)
        kv = (w["linear_kvb.weight"] @ latent).reshape(heads, nope + spec.v_head_dim)
        turned = rotate(rotary_key, position, config)
        queries.append([np.concatenate([q[:nope], rotate(q[nope:], position, config)]) for q in query])
        keys.append([np.concatenate([k[:nope], turned]) for k in kv])
        values.append(kv[:, nope:])
    out = []
    for i in range(seq):
        seen = [j for j in range(i + 1) if hidden is None or not hidden[i, j]]
        mixed_heads = []
        for h in range(heads):
            weights = softmax(np.array([spec.softmax_scale * queries[i][h] @ keys[j][h] for j in seen]))
            mixed_heads.append(sum(p * values[j][h] for p, j in zip(weights, seen, strict=True)))
        out.append(w["linear_proj.weight"] @ np.concatenate(mixed_heads))
    return np.array(out)


def dense_mlp(x: F64, w: Weights, prefix: str) -> F64:
    both = w[prefix + "linear_fc1.weight"] @ x
    return w[prefix + "linear_fc2.weight"] @ (silu(both[0::2]) * both[1::2])


def choose(choice: F64, config: DeepSeekV3Config) -> list[int]:
    spec = config.moe.router
    allowed = set(range(spec.num_experts))
    if spec.n_group > 1:
        size = spec.num_experts // spec.n_group
        groups = [list(range(g * size, (g + 1) * size)) for g in range(spec.n_group)]
        best = sorted(groups, key=lambda group: -sum(sorted(choice[group])[-2:]))[: spec.topk_group]
        allowed = {expert for group in best for expert in group}
    return sorted(sorted(allowed, key=lambda e: -choice[e])[: spec.num_experts_per_tok])


def scores_of(logits: F64, function: str) -> F64:
    if function == "softmax":
        return softmax(logits)
    return 1 / (1 + np.exp(-logits)) if function == "sigmoid" else np.sqrt(np.log1p(np.exp(logits)))


def moe(x: F64, w: Weights, config: DeepSeekV3Config) -> tuple[F64, F64, list[int]]:
    """Output, scores and chosen experts of one token."""
    spec = config.moe.router
    scores = scores_of(w["router.weight"] @ x, spec.score_function)
    chosen = choose(scores + w.get("expert_bias", np.zeros(spec.num_experts)), config)
    weights = scores[chosen]
    if spec.norm_topk_prob:
        weights = weights / weights.sum()
    out = np.zeros_like(x)
    for expert, weight in zip(chosen, weights * spec.routed_scaling_factor, strict=True):
        gate, up = np.split(x @ w["experts.weight1"][expert], 2)
        out += weight * ((silu(gate) * up) @ w["experts.weight2"][expert])
    if config.moe.shared_intermediate_size:
        out += dense_mlp(x, w, "shared_experts.")
    return out, scores, chosen


def sequence_balance(scores: list[F64], k: int, function: str) -> float:
    """DeepSeek-V3, eq. 17 to 20, of one sequence, without the coefficient."""
    shares = [s if function == "softmax" else s / s.sum() for s in scores]
    experts, seq = len(scores[0]), len(scores)
    counts = np.zeros(experts)
    for share in shares:
        counts[sorted(range(experts), key=lambda e: -share[e])[:k]] += 1
    return float(sum(counts[e] * experts / (k * seq) * sum(s[e] for s in shares) / seq for e in range(experts)))


def below(weights: Weights, prefix: str) -> Weights:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def forward(
    weights: Weights, config: DeepSeekV3Config, ids: NDArray[np.int32], hidden: NDArray[np.bool_] | None = None
) -> tuple[F64, list[float]]:
    """Logits (batch, seq, vocab), and the mean balance loss of each layer with experts (seq_aux_loss)."""
    x = weights["embedding.word_embeddings.weight"][ids]
    balances = []
    for layer in range(config.num_hidden_layers):
        w = below(weights, f"decoder.layers.{layer}.")
        of_layer = []
        for row in range(len(x)):
            normed = np.array([norm(t, w["input_layernorm.weight"], config.rms_norm_eps) for t in x[row]])
            mask = None if hidden is None else hidden[row]
            x[row] += attention(normed, below(w, "self_attention."), config, mask)
            normed = np.array([norm(t, w["pre_mlp_layernorm.weight"], config.rms_norm_eps) for t in x[row]])
            mlp = below(w, "mlp.")
            if layer not in config.moe_layers:
                x[row] += np.array([dense_mlp(t, mlp, "") for t in normed])
                continue
            told = [moe(t, mlp, config) for t in normed]
            x[row] += np.array([out for out, _, _ in told])
            router = config.moe.router
            scores = [s for _, s, _ in told]
            of_layer.append(sequence_balance(scores, router.num_experts_per_tok, router.score_function))
        if of_layer:
            balances.append(float(np.mean(of_layer)))
    eps, weight = config.rms_norm_eps, weights["decoder.final_layernorm.weight"]
    final = np.array([[norm(t, weight, eps) for t in row] for row in x])
    head = weights.get("output_layer.weight", weights["embedding.word_embeddings.weight"])
    return final @ head.T, balances


def total_loss(
    weights: Weights, config: DeepSeekV3Config, ids: NDArray[np.int32], labels: NDArray[np.int32], mask: F64
) -> float:
    """Σ(token loss · mask) / Σ mask + Σ over layers of coefficient · balance loss."""
    logits, balances = forward(weights, config, ids)
    losses = [
        -math.log(softmax(logits[b, t])[labels[b, t]]) * mask[b, t] for b in range(len(ids)) for t in range(len(ids[0]))
    ]
    coefficient = config.moe.balance.coefficient if config.moe.balance else 0.0
    return float(sum(losses) / mask.sum() + coefficient * sum(balances))
