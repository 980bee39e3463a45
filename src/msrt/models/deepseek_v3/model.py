"""The DeepSeek-V3 network (DeepSeek-AI, 2024): loss, logits, and what an observer wants to see on the way."""

import numpy as np
from mindspore import Tensor, nn, ops
from numpy.typing import NDArray

from msrt.models.api import LossParts
from msrt.models.batch import checked_ids, masked_labels, positions
from msrt.models.deepseek_v3.config import DeepSeekV3Config
from msrt.models.deepseek_v3.layers import Decoder, Embedding, OutputLayer
from msrt.models.deepseek_v3.names import name_table
from msrt.nn.moe import MoEStats, updated_bias
from msrt.ops.autograd import Ints, array, tensor
from msrt.ops.basic import zero
from msrt.weights.names import NameRow


class DeepSeekV3(nn.Cell):
    """A DeepSeek-V3 model (see `models.api.Model`); its parameters have MindFormers' PyNative names."""

    def __init__(self, config: DeepSeekV3Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config.vocab_size, config.hidden_size)
        self.decoder = Decoder(config)
        self.output_layer = OutputLayer(config.vocab_size, config.hidden_size, tied=config.tie_word_embeddings)
        self.start_step()

    def construct(
        self, input_ids: Tensor, position_ids: Tensor | None, attention_mask: Tensor | None
    ) -> tuple[Tensor, list[Tensor], dict[int, MoEStats]]:
        """The normed last hidden state (batch, seq, hidden), the states from the embedding on, the experts' stats."""
        config = self.config
        checked_ids(input_ids, "input_ids", config.vocab_size, config.max_sequence)
        cos, sin = config.rotary.tables(positions(input_ids, position_ids))
        embedded = self.embedding(input_ids)
        final, states, stats = self.decoder(embedded, cos, sin, attention_mask, self.histories)
        return final, [embedded, *states], stats

    def loss(
        self,
        input_ids: Tensor,
        labels: Tensor,
        loss_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> LossParts:
        """See `Model.loss`. Raises UserError for ids outside the vocabulary and too long sequences."""
        targets, weights = masked_labels(labels, loss_mask, self.config.vocab_size)
        final, _, stats = self(input_ids, position_ids, attention_mask)
        main = self.output_layer(final, self._tied_weight(), targets, weights)
        balance = sum((told.balance_loss for told in stats.values()), start=zero())
        coefficient = self.config.moe.balance.coefficient if self.config.moe.balance else 0.0
        aux = balance * coefficient
        for layer, told in stats.items():
            self.histories[layer] = ops.stop_gradient(self.histories[layer] + told.balance_counts)
        counts = [array(told.tokens_per_expert) for told in stats.values()]
        return LossParts(
            total=main + aux,
            main=main,
            aux=aux,
            load_balancing=balance / max(len(stats), 1),
            tokens_per_expert=tensor(np.reshape(counts, (-1, self.config.moe.router.num_experts)).astype(np.int64)),
        )

    def logits(self, input_ids: Tensor, position_ids: Tensor | None = None) -> Tensor:
        """See `Model.logits`."""
        final, _, _ = self(input_ids, position_ids, None)
        logits: Tensor = self.output_layer(final, self._tied_weight())
        return logits

    def trace(
        self, input_ids: Tensor, position_ids: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> dict[str, NDArray[np.generic]]:
        """See `Model.trace`. Rows of router values are batch · seq; topk_weights follow topk_indices."""
        final, (embedded, *states), stats = self(input_ids, position_ids, attention_mask)
        seen = {"hidden.embed": embedded, "hidden.final_norm": final}
        seen.update((f"hidden.{layer}", state) for layer, state in enumerate(states))
        for layer, told in stats.items():
            for name in ("logits", "topk_indices", "topk_weights"):
                seen[f"router.{layer}.{name}"] = getattr(told, name)
        return {name: array(value) for name, value in seen.items()}

    def start_step(self) -> None:
        """See `Model.start_step`."""
        empty = np.zeros(self.config.moe.router.num_experts, np.float32)
        self.histories = {layer: tensor(empty) for layer in self.config.moe_layers}

    def update_expert_bias(self, counts: Ints) -> None:
        """See `Model.update_expert_bias`; nothing happens in a model without expert biases."""
        if not self.config.moe.expert_bias:
            return
        for layer, loads in zip(self.config.moe_layers, counts, strict=True):
            bias = self.decoder.layers[layer].mlp.expert_bias
            bias.set_data(tensor(updated_bias(array(bias), loads, self.config.bias_update_rate)))

    def name_table(self) -> tuple[NameRow, ...]:
        """See `Model.name_table`."""
        return name_table(self.config)

    def _tied_weight(self) -> Tensor | None:
        return self.embedding.word_embeddings.weight if self.config.tie_word_embeddings else None
