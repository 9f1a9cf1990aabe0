"""Late interaction: each text is a matrix of token vectors, and similarity is the mean of maximum cosines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.models.abilities import LimitedModel, OrderedPairModel
from giccs.models.checkpoint import located, stated_kind
from giccs.models.encoding import BatchSize, encode_in_batches
from giccs.models.input_limits import count_cut, default_prompt, reads_completely
from giccs.models.modules import LIBRARY, SavedModel, saved_model
from giccs.models.quantisation import quantised_as
from giccs.models.sentence_loading import library_environment, load_sentence_transformers
from giccs.models.weights import POOLER
from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.models import ModelOptions

SIMILARITY = "mean MaxSim, both directions"
"""Entry ``similarity`` of a signature."""

CLASSES = ("MultiVectorEncoder", "ColBERT", "SentenceTransformer")
"""Classes with token vectors."""
KNOWN_MODULES = (*LIBRARY, "pylate.models.Dense.Dense")
"""Classes in modules.json without foreign code: sentence-transformers has its own class for PyLate's."""
COLBERT_PROJECTION = ("linear.weight",)
"""Tensors of ColBERT's own checkpoints that sentence-transformers reads in addition to the encoder."""

Matrix = NDArray[np.float32]


def open_late_interaction(name: str, location: str, options: ModelOptions) -> LateInteractionModel:
    """Return the model in the folder `location` or of that hub id.

    Its weights are loaded on first use.
    """
    path = located(location, options.revision, offline=options.offline)
    saved = saved_model(name, path, options, CLASSES, KNOWN_MODULES)
    return LateInteractionModel(name, saved, options)


def mean_maxsim(a: Matrix, b: Matrix) -> float:
    """Return the mean over the rows of `a` (n, D) of the maximum inner product with a row of `b` (m, D).

    NaN without rows. Rows are unit vectors, so that the result is a mean of cosines, from -1 to 1.

    >>> a, b = np.eye(2, dtype=np.float32), np.array([[1.0, 0.0]], dtype=np.float32)
    >>> mean_maxsim(a, b), mean_maxsim(b, a)
    (0.5, 1.0)
    """
    if not len(a) or not len(b):
        return float("nan")
    return float((a.astype(np.float64) @ b.astype(np.float64).T).max(axis=1).mean())


def maxsim_order_scores(
    model: Any, left: Sequence[str], right: Sequence[str], batch: BatchSize, progress: Progress
) -> NDArray[np.float64]:
    """Return the (N, 2) `mean_maxsim` of N pairs, from left to right and from right to left.

    model: a MultiVectorEncoder of sentence-transformers. Each distinct text is encoded once.
    """

    def encode(texts: Sequence[Any]) -> Any:
        count_cut(_is_read(model, texts))
        return model.encode_document(
            list(texts),
            batch_size=len(texts),
            convert_to_numpy=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )

    distinct = list(dict.fromkeys([*left, *right]))
    batches = encode_in_batches(encode, distinct, batch)
    rows = (row for indices, matrices in batches for row in zip(indices, matrices, strict=True))
    tokens = {
        distinct[index]: matrix for index, matrix in progress(rows, "encoding", len(distinct))
    }
    pairs = [(tokens[a], tokens[b]) for a, b in zip(left, right, strict=True)]
    return np.array([(mean_maxsim(a, b), mean_maxsim(b, a)) for a, b in pairs]).reshape(-1, 2)


def document_fits(model: Any, left: Sequence[str], right: Sequence[str]) -> NDArray[np.bool_]:
    """Return (N,) whether a MultiVectorEncoder reads both texts of each pair completely, as documents."""
    return _is_read(model, left) & _is_read(model, right)


def _is_read(model: Any, texts: Sequence[str]) -> NDArray[np.bool_]:
    prompt = default_prompt(model, ("document", "passage", "corpus"))
    return reads_completely(model, texts, prompt, "document")


class LateInteractionModel(OrderedPairModel, LimitedModel):
    """A MultiVectorEncoder of sentence-transformers, or the token vectors of another encoder.

    With the unit vectors a_1 … a_n and b_1 … b_m of the tokens of two texts, the similarity is the mean of ::

        s(a, b) = 1/n Σ_i max_j a_i·b_j    and    s(b, a) = 1/m Σ_j max_i a_i·b_j

    s is MaxSim (Khattab and Zaharia 2020, equation 3) divided by the number of tokens, so that it does not
    grow with the length of a text. Neither text is a query, so both are encoded as documents: with the
    prompt, length limit and projection that the model states for documents, without the tokens that it skips
    (in ColBERT, punctuation), and without query expansion. Special tokens have vectors as well.

    Encoders that are not late-interaction models are used without projection: the vectors of all tokens in
    the last layer, including special tokens.
    """

    name: str

    def __init__(self, name: str, saved: SavedModel, options: ModelOptions) -> None:
        self.name = name
        self._saved = saved
        self._options = options
        self._batch = BatchSize(options.batch_size)
        self._unused = ""

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the similarities."""
        return {
            "kind": "late-interaction",
            **self._saved.identity,
            "dtype": self._dtype,
            **quantised_as(self._options),
            "tokens": "as documents of the model" if self._is_own else "last layer",
            "similarity": SIMILARITY,
        }

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device and final batch size."""
        return library_environment(
            self._model, self._saved.folder, self._options, self._batch.size, self._unused
        )

    def order_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the (N, 2) similarities s(left, right) and s(right, left) of N pairs."""
        return maxsim_order_scores(self._model, left, right, self._batch, progress)

    def fits(
        self, targets: Sequence[str], candidates: Sequence[str], progress: Progress
    ) -> NDArray[np.bool_]:
        """Return (N,) whether both texts of each pair are read completely, as documents."""
        return document_fits(self._model, targets, candidates)

    @cached_property
    def _is_own(self) -> bool:
        """Whether the folder contains a late-interaction model."""
        return stated_kind(self._saved.folder) == "late-interaction"

    @cached_property
    def _dtype(self) -> str:
        return self._saved.dtype(self._options.dtype)

    @cached_property
    def _model(self) -> Any:
        model, self._unused = load_sentence_transformers(
            self.name, self._options, self._dtype, self._build, lambda _: POOLER, COLBERT_PROJECTION
        )
        return model

    def _build(self, library: Any, **arguments: Any) -> Any:
        if not hasattr(library, "MultiVectorEncoder"):
            installed = version("sentence-transformers")
            message = f"needs sentence-transformers 6 or newer (installed: {installed})"
            raise InputError(Problem(self.name, None, message))
        if self._is_own:
            return library.MultiVectorEncoder(
                str(self._saved.folder),
                trust_remote_code=self._options.trust_remote_code,
                **arguments,
            )
        encoder = library.SentenceTransformer(
            str(self._saved.folder), trust_remote_code=self._options.trust_remote_code, **arguments
        )
        if not hasattr(encoder[0], "auto_model"):
            message = "has no token vectors; expected a transformer encoder"
            raise InputError(Problem(self.name, None, message))
        # Its own conversion would append a projection with random weights.
        from sentence_transformers.base.modules import Normalize
        from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

        modules = [encoder[0], MultiVectorMask(), Normalize(module_input_name="token_embeddings")]
        return library.MultiVectorEncoder(modules=modules, device=arguments["device"])
