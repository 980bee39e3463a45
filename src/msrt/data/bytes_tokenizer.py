"""The tokenizer that needs no files: one token per UTF-8 byte."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


class BytesTokenizer:
    """Token ids 0 to 255 are the bytes of the UTF-8 text; `eod` 256 ends a document; `vocab_size` is 257."""

    name = "bytes"
    eod = 256
    vocab_size = 257

    def encode(self, text: str) -> NDArray[np.uint16]:
        """The (bytes,) token ids of `text`, without end-of-document.

        Raises `UnicodeEncodeError` for a lone surrogate, which has no UTF-8 form.
        """
        return np.frombuffer(text.encode("utf-8"), np.uint8).astype(np.uint16)

    def encode_documents(
        self, texts: Sequence[str], *, append_eod: bool
    ) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
        """The token ids of `texts` end to end, (tokens,), and the number of tokens of each, (documents,).

        With `append_eod` each text ends with end-of-document. Many short texts take one numpy call instead of many.
        """
        encoded = [text.encode("utf-8") for text in texts]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        ids = np.frombuffer(b"".join(encoded), np.uint8).astype(np.uint16)
        if not append_eod:
            return ids, lengths
        return np.insert(ids, np.cumsum(lengths), self.eod), lengths + 1

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of token ids: end-of-document is left out, and bytes that are not UTF-8 become U+FFFD.

        Raises `ValueError` for an id outside 0 to 256.
        """
        ids = [int(token) for token in tokens]
        foreign = [token for token in ids if not 0 <= token <= self.eod]
        if foreign:
            raise ValueError(f"token id {foreign[0]} is not one of the byte tokenizer's 0 to {self.eod}")
        return bytes(token for token in ids if token != self.eod).decode("utf-8", errors="replace")
