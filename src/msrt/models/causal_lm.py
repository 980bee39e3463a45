"""The language model that all families are: loss, logits, and what an observer wants to see on the way."""

from typing import Any

import numpy as np
from mindspore import Tensor, nn, ops
from numpy.typing import NDArray

from msrt.models.api import LossParts, TokenCounts
from msrt.models.batch import checked_ids, masked_labels, positions, shifted_left
from msrt.models.config import DecoderConfig
from msrt.models.decoder import Attention, Decoder, Embedding, OutputLayer
from msrt.models.mtp import MultiTokenPrediction
from msrt.nn.moe import MoEStats, updated_bias
from msrt.ops.autograd import Ints, array, tensor
from msrt.ops.basic import zero
from msrt.weights.names import NameRow


class CausalLM(nn.Cell):
    """A model of one family (see `models.api.Model`); its parameters have MindFormers' PyNative names."""

    def __init__(self, config: DecoderConfig, attention: Attention, names: tuple[NameRow, ...]) -> None:
        super().__init__()
        self.config = config
        self._names = names
        self.embedding = Embedding(config.vocab_size, config.hidden_size)
        self.decoder = Decoder(config, attention)
        self.output_layer = OutputLayer(config.vocab_size, config.hidden_size, tied=config.tie_word_embeddings)
        self.mtp = MultiTokenPrediction(config, attention) if config.mtp_layers else None
        self.start_step()

    def construct(
        self, input_ids: Tensor, cos: Tensor, sin: Tensor, attention_mask: Tensor | None
    ) -> tuple[Tensor, list[Tensor], dict[int, MoEStats]]:
        """The normed last hidden state (batch, seq, hidden), the states from the embedding on, the experts' stats."""
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
        tokens: TokenCounts | None = None,
    ) -> LossParts:
        """See `Model.loss`. Raises UserError for ids outside the vocabulary and too long sequences."""
        cos, sin = self._tables(input_ids, position_ids)
        final, _, stats = self(input_ids, cos, sin, attention_mask)
        main = self._cross_entropy(final, labels, loss_mask, None if tokens is None else tokens.main)
        total, further = main, tensor(np.zeros(0, np.float32))
        if self.mtp is not None:
            state, told = self._two_ahead(self.mtp.layers[0], input_ids, final, cos, sin, attention_mask)
            stats.update(told)
            mask = tensor(np.ones(labels.shape, np.float32)) if loss_mask is None else loss_mask
            ahead = None if tokens is None else tokens.ahead
            loss = self._cross_entropy(state, shifted_left(labels), shifted_left(mask), ahead)
            total, further = total + loss * self.config.mtp_loss_scaling_factor, loss.reshape((1,))
        balance = sum((told.balance_loss for told in stats.values()), start=zero())
        aux = balance * self._balance_coefficient()
        self._remember(stats)
        return LossParts(
            total=total + aux,
            main=main,
            aux=aux,
            load_balancing=balance / max(len(stats), 1),
            tokens_per_expert=self._loads(stats),
            mtp=further,
        )

    def logits(self, input_ids: Tensor, position_ids: Tensor | None = None) -> Tensor:
        """See `Model.logits`."""
        final, _, _ = self(input_ids, *self._tables(input_ids, position_ids), None)
        logits: Tensor = self.output_layer(final, self._tied_weight())
        return logits

    def trace(
        self, input_ids: Tensor, position_ids: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> dict[str, NDArray[np.generic]]:
        """See `Model.trace`. Rows of router values are batch · seq; topk_weights follow topk_indices."""
        tables = self._tables(input_ids, position_ids)
        final, (embedded, *states), stats = self(input_ids, *tables, attention_mask)
        seen = {"hidden.embed": embedded, "hidden.final_norm": final}
        seen.update((f"hidden.{layer}", state) for layer, state in enumerate(states))
        for layer, told in stats.items():
            for name in ("logits", "topk_indices", "topk_weights"):
                seen[f"router.{layer}.{name}"] = getattr(told, name)
        return {name: array(value) for name, value in seen.items()}

    def start_step(self) -> None:
        """See `Model.start_step`."""
        empty = np.zeros(self._num_experts(), np.float32)
        self.histories = {layer: tensor(empty) for layer in self.config.routed_layers}

    def update_expert_bias(self, counts: Ints) -> None:
        """See `Model.update_expert_bias`; nothing happens in a model without expert biases."""
        if self.config.moe is None or not self.config.moe.expert_bias:
            return
        for layer, loads in zip(self.config.routed_layers, counts, strict=True):
            bias = self._layer(layer).mlp.expert_bias
            bias.set_data(tensor(updated_bias(array(bias), loads, self.config.bias_update_rate)))

    def name_table(self) -> tuple[NameRow, ...]:
        """See `Model.name_table`."""
        return self._names

    def _tables(self, input_ids: Tensor, position_ids: Tensor | None) -> tuple[Tensor, Tensor]:
        """cos and sin of the positions of `input_ids`, which are checked first."""
        checked_ids(input_ids, "input_ids", self.config.vocab_size, self.config.max_sequence)
        return self.config.rotary.tables(positions(input_ids, position_ids))

    def _two_ahead(
        self,
        layer: nn.Cell,
        input_ids: Tensor,
        final: Tensor,
        cos: Tensor,
        sin: Tensor,
        attention_mask: Tensor | None,
    ) -> tuple[Tensor, dict[int, MoEStats]]:
        """The normed state of `layer`, that of multi-token prediction, and its experts' stats."""
        (number,) = self.config.mtp_layers
        embedded = self.embedding(shifted_left(input_ids))
        state, *told = layer(embedded, final, cos, sin, attention_mask, self.histories.get(number))
        return state, {number: MoEStats(*told)} if told else {}

    def _cross_entropy(self, state: Tensor, labels: Tensor, loss_mask: Tensor | None, tokens: float | None) -> Tensor:
        targets, weights = masked_labels(labels, loss_mask, self.config.vocab_size, tokens)
        loss: Tensor = self.output_layer(state, self._tied_weight(), targets, weights)
        return loss

    def _layer(self, number: int) -> Any:
        """The decoder layer of that number, whether of the main model or of multi-token prediction."""
        if self.mtp is not None and number in self.config.mtp_layers:
            return self.mtp.layers[0].transformer_layer
        return self.decoder.layers[number]

    def _tied_weight(self) -> Tensor | None:
        return self.embedding.word_embeddings.weight if self.config.tie_word_embeddings else None

    def _balance_coefficient(self) -> float:
        moe = self.config.moe
        return 0.0 if moe is None or moe.balance is None else moe.balance.coefficient

    def _num_experts(self) -> int:
        return 0 if self.config.moe is None else self.config.moe.router.num_experts

    def _remember(self, stats: dict[int, MoEStats]) -> None:
        for layer, told in stats.items():
            self.histories[layer] = ops.stop_gradient(self.histories[layer] + told.balance_counts)

    def _loads(self, stats: dict[int, MoEStats]) -> Tensor:
        loads = [array(told.tokens_per_expert) for told in stats.values()]
        return tensor(np.reshape(loads, (len(loads), self._num_experts())).astype(np.int64))
