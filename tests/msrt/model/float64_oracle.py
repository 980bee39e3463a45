"""The families once more, in plain float64 numpy, token by token: what the fast models are compared with.

Written from the papers' equations and MindFormers' arithmetic; of the package it uses the config's numbers only.
"""

import math

import numpy as np
from numpy.typing import NDArray

from msrt.models.config import DecoderConfig
from msrt.models.deepseek_v3.config import DeepSeekV3Config
from msrt.models.gqa.config import GQAConfig
from msrt.nn.rotary import Yarn

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


def frequencies(config: DecoderConfig) -> list[float]:
    """Angle per position of each rotated pair, straight from the formulas of YaRN."""
    spec, yarn = config.rotary, config.rotary.stretch
    plain = [spec.theta ** (-2 * j / spec.dim) for j in range(spec.dim // 2)]
    if yarn is None:
        return plain
    assert isinstance(yarn, Yarn)

    def lane(turns: float) -> float:
        return spec.dim * math.log(yarn.original_length / (turns * 2 * math.pi)) / (2 * math.log(spec.theta))

    low, high = max(math.floor(lane(yarn.beta_fast)), 0), min(math.ceil(lane(yarn.beta_slow)), spec.dim - 1)
    width = (high - low) or 0.001
    slow = [min(max((j - low) / width, 0.0), 1.0) for j in range(spec.dim // 2)]
    return [f / yarn.factor * s + f * (1 - s) for f, s in zip(plain, slow, strict=True)]


def rotate(x: F64, position: int, config: DecoderConfig) -> F64:
    """Pairs of neighbours in DeepSeek-V3, of lanes half a head apart elsewhere; first lanes, then second ones."""
    first, second = [], []
    pairs = x.reshape(-1, 2) if isinstance(config, DeepSeekV3Config) else x.reshape(2, -1).T
    for j, frequency in enumerate(frequencies(config)):
        angle = position * frequency * config.rotary.angle_scale
        c, s = math.cos(angle) * config.rotary.amplitude, math.sin(angle) * config.rotary.amplitude
        a, b = pairs[j]
        first.append(a * c - b * s)
        second.append(b * c + a * s)
    return np.array(first + second)


def attention(x: F64, w: Weights, config: DecoderConfig, hidden: NDArray[np.bool_] | None) -> F64:
    """Self-attention of one sequence (seq, hidden); `hidden` (seq, seq), True where a query must not look."""
    assert isinstance(config, DeepSeekV3Config | GQAConfig)
    if isinstance(config, DeepSeekV3Config):
        queries, keys, values = latent_heads(x, w, config)
    else:
        queries, keys, values = grouped_heads(x, w, config)
    scale = config.attention.softmax_scale
    out = []
    for i in range(len(x)):
        seen = [j for j in range(i + 1) if hidden is None or not hidden[i, j]]
        mixed_heads = []
        for h in range(config.attention.num_attention_heads):
            weights = softmax(np.array([scale * queries[i][h] @ keys[j][h] for j in seen]))
            mixed_heads.append(sum(p * values[j][h] for p, j in zip(weights, seen, strict=True)))
        out.append(w["linear_proj.weight"] @ np.concatenate(mixed_heads) + w.get("linear_proj.bias", 0.0))
    return np.array(out)


Heads = list[list[F64]]


def grouped_heads(x: F64, w: Weights, config: GQAConfig) -> tuple[Heads, Heads, Heads]:
    """Query, key and value of each position and head; heads of a group have the same key and value."""
    spec, size = config.attention, config.attention.head_dim
    share = spec.num_attention_heads // spec.num_key_value_heads
    queries: Heads = []
    keys: Heads = []
    values: Heads = []
    for position, state in enumerate(x):
        mixed = w["linear_qkv.weight"] @ state + w.get("linear_qkv.bias", 0.0)
        q, k, v = [], [], []
        for group in mixed.reshape(spec.num_key_value_heads, share + 2, size):
            if spec.qk_norm_eps is not None:
                for head in group[:share]:
                    head[:] = norm(head, w["q_layernorm.weight"], spec.qk_norm_eps)
                group[share] = norm(group[share], w["k_layernorm.weight"], spec.qk_norm_eps)
            q += [rotate(head, position, config) for head in group[:share]]
            k += [rotate(group[share], position, config)] * share
            v += [group[share + 1]] * share
        queries.append(q)
        keys.append(k)
        values.append(v)
    return queries, keys, values


def latent_heads(x: F64, w: Weights, config: DeepSeekV3Config) -> tuple[Heads, Heads, Heads]:
    """Query, key and value of each position and head, from the latents."""
    spec, seq = config.attention, len(x)
    rope, nope, heads = spec.qk_rope_head_dim, spec.qk_nope_head_dim, spec.num_attention_heads
    queries: Heads = []
    keys: Heads = []
    values: Heads = []
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
        values.append(list(kv[:, nope:]))
    return queries, keys, values


def dense_mlp(x: F64, w: Weights, prefix: str) -> F64:
    both = w[prefix + "linear_fc1.weight"] @ x
    return w[prefix + "linear_fc2.weight"] @ (silu(both[0::2]) * both[1::2])


def choose(choice: F64, config: DecoderConfig) -> list[int]:
    assert config.moe is not None
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


def moe(x: F64, w: Weights, config: DecoderConfig) -> tuple[F64, F64, list[int]]:
    """Output, scores and chosen experts of one token."""
    assert config.moe is not None
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


def layer(
    x: F64, w: Weights, config: DecoderConfig, hidden: NDArray[np.bool_] | None, *, experts: bool
) -> tuple[F64, float | None]:
    """States (batch, seq, hidden) behind a layer with the weights `w`, and its balance loss when it has experts."""
    x, of_rows = x.copy(), []
    for row in range(len(x)):
        normed = np.array([norm(t, w["input_layernorm.weight"], config.rms_norm_eps) for t in x[row]])
        mask = None if hidden is None else hidden[row]
        x[row] += attention(normed, below(w, "self_attention."), config, mask)
        normed = np.array([norm(t, w["pre_mlp_layernorm.weight"], config.rms_norm_eps) for t in x[row]])
        mlp = below(w, "mlp.")
        if not experts:
            x[row] += np.array([dense_mlp(t, mlp, "") for t in normed])
            continue
        told = [moe(t, mlp, config) for t in normed]
        x[row] += np.array([out for out, _, _ in told])
        assert config.moe is not None
        router = config.moe.router
        scores = [s for _, s, _ in told]
        of_rows.append(sequence_balance(scores, router.num_experts_per_tok, router.score_function))
    return x, float(np.mean(of_rows)) if of_rows else None


def normed_states(x: F64, weight: F64, config: DecoderConfig) -> F64:
    return np.array([[norm(t, weight, config.rms_norm_eps) for t in row] for row in x])


def states(
    weights: Weights, config: DecoderConfig, ids: NDArray[np.int32], hidden: NDArray[np.bool_] | None = None
) -> tuple[F64, list[float]]:
    """Normed last states (batch, seq, hidden), and the balance loss of each layer with experts (seq_aux_loss)."""
    x = weights["embedding.word_embeddings.weight"][ids]
    balances: list[float] = []
    for number in range(config.num_hidden_layers):
        x, balance = layer(
            x, below(weights, f"decoder.layers.{number}."), config, hidden, experts=number in config.moe_layers
        )
        balances += [] if balance is None else [balance]
    return normed_states(x, weights["decoder.final_layernorm.weight"], config), balances


def head(weights: Weights) -> F64:
    return weights.get("output_layer.weight", weights["embedding.word_embeddings.weight"])


def forward(
    weights: Weights, config: DecoderConfig, ids: NDArray[np.int32], hidden: NDArray[np.bool_] | None = None
) -> tuple[F64, list[float]]:
    """Logits (batch, seq, vocab), and the balance loss of each layer with experts."""
    final, balances = states(weights, config, ids, hidden)
    return final @ head(weights).T, balances


def two_ahead(weights: Weights, config: DecoderConfig, ids: NDArray[np.int32]) -> tuple[F64, list[float]]:
    """Logits of the token after the next, and the balance losses of all layers with experts."""
    final, balances = states(weights, config, ids)
    w = below(weights, "mtp.layers.0.")
    following = np.pad(ids[:, 1:], ((0, 0), (0, 1)))
    embedded = normed_states(weights["embedding.word_embeddings.weight"][following], w["enorm.weight"], config)
    joined = np.concatenate([embedded, normed_states(final, w["hnorm.weight"], config)], -1) @ w["eh_proj.weight"].T
    experts = config.num_hidden_layers - 1 in config.moe_layers
    x, balance = layer(joined, below(w, "transformer_layer."), config, None, experts=experts)
    logits = normed_states(x, w["final_layernorm.weight"], config) @ head(weights).T
    return logits, [*balances, *([] if balance is None else [balance])]


def mean_loss(logits: F64, labels: NDArray[np.int32], mask: F64) -> float:
    """Σ(token loss · mask) / Σ mask."""
    places = [(b, t) for b in range(len(labels)) for t in range(len(labels[0])) if mask[b, t]]
    return float(sum(-math.log(softmax(logits[b, t])[labels[b, t]]) * mask[b, t] for b, t in places) / mask.sum())


def total_loss(
    weights: Weights, config: DecoderConfig, ids: NDArray[np.int32], labels: NDArray[np.int32], mask: F64
) -> float:
    """The main loss + coefficient · Σ over layers of balance losses + the weighted loss two tokens ahead."""
    logits, balances = forward(weights, config, ids)
    total = mean_loss(logits, labels, mask)
    if config.mtp_loss_scaling_factor is not None:
        further, balances = two_ahead(weights, config, ids)
        after = [np.pad(column[:, 1:], ((0, 0), (0, 1))) for column in (labels, mask)]
        total += config.mtp_loss_scaling_factor * mean_loss(further, *after)
    coefficient = config.moe.balance.coefficient if config.moe and config.moe.balance else 0.0
    return total + coefficient * sum(balances)
