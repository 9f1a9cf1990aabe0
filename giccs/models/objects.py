"""Models given as Python objects: those of sentence-transformers and transformers, and functions.

They are evaluated by `giccs.evaluate`, or under the name ``python:MODULE:ATTRIBUTE`` by giccs eval.
"""

from __future__ import annotations

import inspect
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import fields
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem, suggestion
from giccs.models.abilities import (
    GeneratingModel,
    LikelihoodModel,
    LimitedModel,
    Model,
    OptionScore,
    OrderedPairModel,
    PairModel,
    Prompt,
    PromptedModel,
    Scored,
    SidedModel,
    TextPairModel,
    VectorModel,
    check_prompts,
)
from giccs.models.causal import CausalModel
from giccs.models.checkpoint import first_line
from giccs.models.cross_encoder import SCORE, check_label, pair_fits, pair_order_scores
from giccs.models.encoder_prompts import (
    EncoderPrompt,
    Routes,
    Side,
    after_prompt,
    check_routes,
    check_symmetric,
    resolve_prompt,
)
from giccs.models.encoding import (
    SIMILARITIES,
    Batches,
    BatchSize,
    EncoderInput,
    encode_in_batches,
    encoded,
    encoded_sides,
)
from giccs.models.input_limits import (
    NO_LIMIT,
    count_cut,
    limit_to_positions,
    position_limit,
    reads_completely,
)
from giccs.models.late_interaction import SIMILARITY, document_fits, maxsim_order_scores
from giccs.models.loading import Loaded, Source
from giccs.models.model_errors import UnsupportedOptionError
from giccs.models.object_digest import model_digest
from giccs.models.sentence import library_vectors
from giccs.models.seq2seq import Seq2SeqModel
from giccs.models.vocabulary import TokenCounter, counted_inputs, separates_pairs
from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.models import ModelOptions

EXPECTED = (
    "a name, a SentenceTransformer, SparseEncoder, CrossEncoder or MultiVectorEncoder, a transformers model "
    "with its tokenizer (model, tokenizer), an object with a method encode(texts), or a function: texts to "
    "vectors, (left, right) to similarities, or (prompts, options) to log-likelihoods"
)


def open_python(name: str, location: str, options: ModelOptions) -> Model:
    """Return the model ``MODULE:ATTRIBUTE``, an object or a function without arguments that returns one.

    Modules are also searched in the current folder. Raises InputError if there is no such model.
    """
    module_name, _, attribute = location.partition(":")
    if not module_name or not attribute:
        raise _refused(name, "expected python:MODULE:ATTRIBUTE")
    if (folder := os.getcwd()) not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = import_module(module_name)
    except Exception as error:  # The module may raise anything.
        raise _refused(name, f"{module_name} cannot be imported: {first_line(error)}") from error
    if not hasattr(module, attribute):
        guess = suggestion(attribute, vars(module))
        raise _refused(name, f"{module_name} has no attribute {attribute!r}{guess}")
    value = getattr(module, attribute)
    if inspect.isfunction(value) and not inspect.signature(value).parameters:
        value = value()
    try:
        return model_of_object(value, name, options)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise _refused(name, str(error)) from None


def model_of_object(value: Any, name: str = "", options: ModelOptions | None = None) -> Model:
    """Return the model that an object describes.

    name: its name in results, by default that of the function or of the weights. The results of a function
    are only reused if it has an attribute ``revision``, because its content is unknown. Raises TypeError for
    an object of another type, and UnsupportedOptionError for options that this model does not support, such
    as those of loading. Options of models on a server are ignored.

    >>> model = model_of_object(lambda left, right: [len(text) for text in right], "length")
    >>> model.pair_scores(["a"], ["four"], lambda work, label, total=None: iter(work)).tolist()
    [4.0]
    """
    from giccs.models import ModelOptions, configured

    options = options or ModelOptions()
    model = _model_of_object(value, name, options)
    if unsupported := _loading_options(options):
        raise UnsupportedOptionError(model.name, "is already loaded", *unsupported)
    return configured(model, options)


def _loading_options(options: ModelOptions) -> list[str]:
    """Return the names of the options that only apply to models loaded by giccs and are not the default."""
    from giccs.models import ENCODER_OPTIONS, SERVER_OPTIONS, ModelOptions

    applicable = {*ENCODER_OPTIONS, *SERVER_OPTIONS, "batch_size", "seed", "offline"} - {"pooling"}
    return [
        field.name
        for field in fields(ModelOptions)
        if field.compare and field.name not in applicable
        and getattr(options, field.name) != field.default
    ]  # fmt: skip


def _model_of_object(value: Any, name: str, options: ModelOptions) -> Model:
    if isinstance(value, (PairModel, VectorModel, LikelihoodModel, GeneratingModel)):
        required = ("name", "identity", "environment")
        if missing := [attribute for attribute in required if not hasattr(value, attribute)]:
            message = (
                f"{_type_name(value)} without {', '.join(missing)}; see giccs.models.abilities"
            )
            raise TypeError(f"the model is {message}")
        return value
    encoders = ("SentenceTransformer", "SparseEncoder")
    if any(_is_instance(value, "sentence_transformers", encoder) for encoder in encoders):
        return SentenceTransformerObject(name or _weights_name(value[0]), value, options)
    if _is_instance(value, "sentence_transformers", "CrossEncoder"):
        return CrossEncoderObject(name or _weights_name(value[0]), value, options)
    if _is_instance(value, "sentence_transformers", "MultiVectorEncoder"):
        return LateInteractionObject(name or _weights_name(value[0]), value, options)
    if _is_instance(value, "transformers", "Pipeline"):
        value = value.model, value.tokenizer
    if _is_instance(value, "transformers", "PreTrainedModel"):
        value = value, _tokenizer_of(value)
    if isinstance(value, tuple) and len(value) == 2:
        if _is_instance(value[0], "transformers", "PreTrainedModel"):
            return _transformer(*value, name or _weights_name(value[0]), options)
    elif callable(getattr(value, "encode", None)) and not isinstance(value, str):
        _check_encode(value)
        return EncoderObject(name or type(value).__name__, value.encode, value, options)
    elif inspect.isroutine(value) or (callable(value) and not inspect.isclass(value)):
        return _function(value, name or _function_name(value), options)
    raise TypeError(f"the model is {_type_name(value)}; expected {EXPECTED}")


def _function_name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _type_name(value: Any) -> str:
    return (
        f"the class {value.__name__}"
        if inspect.isclass(value)
        else f"of type {type(value).__name__}"
    )


def _is_instance(value: Any, module: str, class_name: str) -> bool:
    """Return whether a value is an instance of a class, without importing its module."""
    loaded_class = getattr(sys.modules.get(module), class_name, None)
    return loaded_class is not None and isinstance(value, loaded_class)


def _transformer(model: Any, tokenizer: Any, name: str, options: ModelOptions) -> Model:
    if model.config.is_encoder_decoder:
        return Seq2SeqObject(name, model, tokenizer, options)
    if model.can_generate():
        return CausalObject(name, model, tokenizer, options)
    return TransformerObject(name, model, tokenizer, options)


def _tokenizer_of(model: Any) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(model.config.name_or_path, trust_remote_code=False)
    except Exception as error:  # Transformers raises many kinds of exceptions.
        message = f"its tokenizer cannot be loaded ({first_line(error)}); pass (model, tokenizer)"
        raise TypeError(message) from error


def _check_encode(value: Any) -> None:
    """Raise TypeError for an object whose method `encode` requires other arguments than texts."""
    parameters = _required_parameters(value.encode)
    if parameters is not None and len(parameters) != 1:
        call = ", ".join(f"{parameter}=..." for parameter in parameters[1:])
        remedy = f"pass a function, such as lambda texts: model.encode(texts, {call})"
        message = (
            f"the method encode of an object {_type_name(value)} requires ({', '.join(parameters)})"
        )
        raise TypeError(f"{message}; expected (texts); {remedy}")


def _required_parameters(function: Callable[..., Any]) -> list[str] | None:
    """Return the names of the parameters without default, or None if they are unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        parameter.name
        for parameter in parameters
        if parameter.kind not in variable and parameter.default is parameter.empty
    ]


def _function(function: Callable[..., Any], name: str, options: ModelOptions) -> Model:
    """Return the model of a function, by its parameters."""
    parameters = _required_parameters(function) or []
    if len(parameters) == 1:
        return EncoderObject(name, function, function, options)
    if len(parameters) == 2:
        kind = OptionFunction if parameters == ["prompts", "options"] else PairFunction
        return kind(name, function)
    raise TypeError(
        f"the function {name} has the required parameters ({', '.join(parameters)}); expected "
        "(texts) to vectors, (left, right) to similarities, or (prompts, options) to log-likelihoods"
    )


class EncoderObject(PairModel, SidedModel, PromptedModel):
    """An encoder with the cosine of two vectors as similarity; a prompt is put before each text."""

    name: str

    def __init__(
        self, name: str, encode: Callable[[list[Any]], Any], weights: Any, options: ModelOptions
    ) -> None:
        self.name = name
        self._encode = encode
        self._weights = weights
        self._batch = BatchSize(options.batch_size)
        self._prompt = self._resolve("default")

    _similarity = "cosine"

    @cached_property
    def _weights_identity(self) -> Mapping[str, Any]:
        return _identity(self._weights)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the vectors."""
        prompt = self._prompt.identity()
        return {**self._weights_identity, **prompt, "similarity": self._similarity}

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, and the final batch size."""
        return {**_environment(self._weights), "batch_size": self._batch.size}

    def with_prompt(self, prompt: str) -> EncoderObject:
        """Return this model with another prompt."""
        model = copy(self)
        model._prompt = self._resolve(prompt)
        return model

    def is_symmetric(self) -> bool:
        """Return whether targets and candidates have the same prompt."""
        return self._prompt.is_symmetric

    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the similarity of each pair."""
        return SIMILARITIES[self._similarity](*self.side_vectors(left, right, progress))

    def vectors(self, texts: Sequence[str], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) vectors of N texts; each distinct text is encoded once."""
        check_symmetric(self)
        return encoded(texts, self._batches_of(self._prompt.target), progress)

    def side_vectors(
        self, targets: Sequence[str], candidates: Sequence[str], progress: Progress
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return (N, D) vectors of N targets and (M, D) vectors of M candidates, with their prompts."""
        return encoded_sides(targets, candidates, self._prompt, self._batches_of, progress)

    def _resolve(self, prompt: str) -> EncoderPrompt:
        return resolve_prompt(self.name, prompt, {})

    def _batches_of(self, side: Side) -> Batches:
        """Return an encoder of the texts of a side."""
        return partial(encode_in_batches, partial(self._checked_vectors, side), size=self._batch)

    def _encode_after(self, side: Side, texts: Sequence[EncoderInput]) -> Any:
        return self._encode([after_prompt(side.prompt, text) for text in texts])

    def _checked_vectors(self, side: Side, texts: Sequence[EncoderInput]) -> NDArray[np.float32]:
        vectors = _array(self.name, self._encode_after(side, texts)).astype(np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            message = f"returned an array of shape {vectors.shape} for {len(texts)} texts; expected"
            raise _refused(self.name, f"{message} ({len(texts)}, D), one vector per text")
        return vectors


class _LimitedEncoderObject(EncoderObject, LimitedModel):
    """An encoder whose maximum number of tokens is known."""

    def fits(
        self,
        targets: Sequence[EncoderInput],
        candidates: Sequence[EncoderInput],
        progress: Progress,
    ) -> NDArray[np.bool_]:
        """Return (N,) whether both texts of each pair are read completely, with their prompts."""
        return self._reads(self._prompt.target, targets) & self._reads(
            self._prompt.candidate, candidates
        )

    def _checked_vectors(self, side: Side, texts: Sequence[EncoderInput]) -> NDArray[np.float32]:
        count_cut(self._reads(side, texts))
        return super()._checked_vectors(side, texts)

    @abstractmethod
    def _reads(self, side: Side, texts: Sequence[EncoderInput]) -> NDArray[np.bool_]:
        """Return (N,) whether each text of a side is read completely."""


class TransformerObject(_LimitedEncoderObject):
    """An encoder of transformers that is already loaded; its vectors are means of those of tokens."""

    def __init__(self, name: str, model: Any, tokenizer: Any, options: ModelOptions) -> None:
        limits = (tokenizer.model_max_length, position_limit(model.base_model), NO_LIMIT)
        self._limit = int(min(limit for limit in limits if limit is not None))
        self._tokenizer = tokenizer
        encode = _mean_of_tokens(model.base_model, tokenizer, self._limit)
        super().__init__(name, encode, model, options)

    def _reads(self, side: Side, texts: Sequence[EncoderInput]) -> NDArray[np.bool_]:
        inputs = [after_prompt(side.prompt, text) for text in texts]
        ids = self._tokenizer(inputs, verbose=False)
        return np.array([len(row) <= self._limit for row in ids["input_ids"]], dtype=np.bool_)


class SentenceTransformerObject(_LimitedEncoderObject, TextPairModel):
    """A SentenceTransformer or SparseEncoder that is already loaded, with its own prompts and similarity.

    A maximum number of tokens that exceeds the positions of the model is reduced, also for the caller.
    """

    def __init__(self, name: str, model: Any, options: ModelOptions) -> None:
        self._similarity = str(model.similarity_fn_name)
        limit_to_positions(model)
        super().__init__(name, model.encode, model, options)
        if any(type(module).__name__ == "CNN" for module in model):
            self._batch = BatchSize(1)  # Convolutions read the padding of a batch.

    def with_prompt(self, prompt: str) -> EncoderObject:
        """Return this model with another prompt."""
        model = super().with_prompt(prompt)
        check_routes(self.name, model._prompt, self._routes)
        return model

    def separates_pairs(self) -> bool:
        """Return whether the tokenizer puts a separator between two texts."""
        return separates_pairs(getattr(self._weights, "tokenizer", None))

    @property
    def _routes(self) -> Routes | None:
        routers = (module for module in self._weights if hasattr(module, "sub_modules"))
        router = next(routers, None)
        if router is None:
            return None
        return Routes((*router.sub_modules,), router.default_route, router.route_mappings)

    def _reads(self, side: Side, texts: Sequence[EncoderInput]) -> NDArray[np.bool_]:
        return reads_completely(self._weights, texts, side.prompt, side.task)

    def _resolve(self, prompt: str) -> EncoderPrompt:
        model = self._weights
        own, default = model.prompts, model.default_prompt_name
        return resolve_prompt(self.name, prompt, own, default, self._routes)

    def _encode_after(self, side: Side, texts: Sequence[EncoderInput]) -> Any:
        with counted_inputs(self._weights):
            return library_vectors(self._weights, texts, side)


class _PairModelObject(OrderedPairModel, LimitedModel):
    """A model of pairs of texts of sentence-transformers that is already loaded."""

    name: str
    _similarity: str

    def __init__(self, name: str, model: Any, options: ModelOptions) -> None:
        limit_to_positions(model)
        self.name = name
        self._model = model
        self._batch = BatchSize(options.batch_size)

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the similarities."""
        return {**_identity(self._model), "similarity": self._similarity}

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, and the final batch size."""
        return {**_environment(self._model), "batch_size": self._batch.size}


class CrossEncoderObject(_PairModelObject):
    """A CrossEncoder that is already loaded; see `CrossEncoderModel`."""

    _similarity = SCORE

    def __init__(self, name: str, model: Any, options: ModelOptions) -> None:
        check_label(name, model.num_labels)
        super().__init__(name, model, options)

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the similarities; the activation function has no weights."""
        return {**super().identity, "activation": repr(self._model.activation_fn)}

    def order_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the (N, 2) scores of N pairs, in the orders (left, right) and (right, left)."""
        with counted_inputs(self._model):
            return pair_order_scores(self._model, left, right, self._batch, progress)

    def fits(
        self, targets: Sequence[str], candidates: Sequence[str], progress: Progress
    ) -> NDArray[np.bool_]:
        """Return (N,) whether each pair, which is one input, is read completely in both orders."""
        return pair_fits(self._model, targets, candidates)


class LateInteractionObject(_PairModelObject):
    """A MultiVectorEncoder that is already loaded; see `LateInteractionModel`."""

    _similarity = SIMILARITY

    def order_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the (N, 2) mean MaxSim of N pairs, from left to right and from right to left."""
        with counted_inputs(self._model):
            return maxsim_order_scores(self._model, left, right, self._batch, progress)

    def fits(
        self, targets: Sequence[str], candidates: Sequence[str], progress: Progress
    ) -> NDArray[np.bool_]:
        """Return (N,) whether both texts of each pair are read completely, as documents."""
        return document_fits(self._model, targets, candidates)


class _Function:
    """A model that is a function."""

    name: str

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self._function = function

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return the name of the function and its revision."""
        return _identity(self._function)

    def environment(self) -> Mapping[str, Any]:
        """Return an empty mapping, because no framework is known."""
        return {}


class PairFunction(_Function, PairModel):
    """A function from two lists of N texts to N similarities."""

    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the similarity of each pair; the function is called once."""
        (scores,) = progress([_array(self.name, self._function([*left], [*right]))], "pairs", 1)
        if scores.shape != (len(left),):
            message = f"returned an array of shape {scores.shape} for {len(left)} pairs; expected"
            raise _refused(self.name, f"{message} ({len(left)},), one similarity per pair")
        return scores.astype(np.float64)


class OptionFunction(_Function, LikelihoodModel):
    """A function from prompts and the options of each to the log-likelihoods of the options."""

    def score(self, prompts: Sequence[Prompt], progress: Progress) -> Scored:
        """Return the log-likelihood of each option; the function is called once, with the full prompts."""
        check_prompts(self.name, prompts)
        texts, options = [p.text for p in prompts], [p.options for p in prompts]
        (logprobs,) = progress([[*self._function(texts, options)]], "scoring", 1)
        if len(logprobs) != len(prompts):
            message = f"returned {len(logprobs)} rows for {len(prompts)} prompts; expected one each"
            raise _refused(self.name, message)
        rows = zip(prompts, logprobs, strict=True)
        scores = [self._scores(n, *row) for n, row in enumerate(rows, start=1)]
        return Scored(tuple(texts), tuple(scores), cut=0)

    def _scores(self, n: int, prompt: Prompt, logprobs: Any) -> tuple[OptionScore, ...]:
        values = _array(self.name, logprobs)
        if values.shape != (len(prompt.options),):
            message = (
                f"returned an array of shape {values.shape} for the {len(prompt.options)} options"
            )
            raise _refused(self.name, f"{message} of prompt {n}; expected one log-likelihood each")
        if not (values <= 0).all():
            message = f"returned {values.max()} for prompt {n}; expected log-likelihoods, at most 0"
            raise _refused(self.name, message)
        return tuple(
            OptionScore(float(value), None, len(option.lstrip().encode()))
            for value, option in zip(values, prompt.options, strict=True)
        )


class _LoadedTransformer:
    """A model of transformers that is already loaded, with its tokenizer."""

    def __init__(self, name: str, model: Any, tokenizer: Any, options: ModelOptions) -> None:
        super().__init__(name, Source(Path()), options)  # type: ignore[call-arg]
        self._given = model, tokenizer

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the predictions."""
        return _identity(*self._given)

    @cached_property
    def _loaded(self) -> Loaded:
        model, tokenizer = self._given
        return Loaded(model.eval(), tokenizer)

    def _chat_template_text(self) -> str:
        return str(self._given[1].chat_template)


class CausalObject(_LoadedTransformer, CausalModel):
    """A causal language model that is already loaded."""

    def encoder_name(self) -> str:
        """Return an empty string: only models with a name have one for their hidden states."""
        return ""


class Seq2SeqObject(_LoadedTransformer, Seq2SeqModel):
    """An encoder-decoder that is already loaded."""


def _mean_of_tokens(
    model: Any, tokenizer: Any, limit: int
) -> Callable[[list[str]], NDArray[np.float32]]:
    """Return a function to the mean vectors of the tokens in the last layer, without padding.

    limit: number of tokens to which texts are truncated.
    """
    import torch

    counter = TokenCounter(tokenizer)

    def encode(texts: list[str]) -> NDArray[np.float32]:
        tokens = tokenizer(
            texts, padding=True, truncation=True, max_length=limit, return_tensors="pt"
        ).to(model.device)
        counter.batch(tokens)
        with torch.inference_mode():
            states = model.eval()(**tokens).last_hidden_state.float()
        mask = tokens["attention_mask"].unsqueeze(-1)
        means = (states * mask).sum(dim=1) / mask.sum(dim=1)
        return np.asarray(means.cpu().numpy(), dtype=np.float32)

    return encode


def _array(name: str, values: Any) -> NDArray[np.float64]:
    """Return numbers returned by a function, also as tensors, as an array."""
    if hasattr(values, "detach"):
        values = values.detach().float().cpu().numpy()
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise _refused(name, f"returned {type(values).__name__}; expected numbers") from None


def _identity(value: Any, tokenizer: Any = None) -> dict[str, Any]:
    """Return the settings that determine the predictions: a digest of weights, or the name of a function."""
    if hasattr(value, "state_dict"):
        digest = model_digest(value, tokenizer)
        kind, dtype = type(value).__name__, str(value.dtype).removeprefix("torch.")
        return {"kind": "python", "class": kind, "revision": f"sha256:{digest}", "dtype": dtype}
    described = value if hasattr(value, "__qualname__") else type(value)
    name = f"{described.__module__}.{described.__qualname__}"
    return {"kind": "python", "class": name, "revision": getattr(value, "revision", None)}


def _weights_name(model: Any) -> str:
    """Return the name under which weights were loaded, without folders, or the name of their class."""
    config = getattr(getattr(model, "auto_model", model), "config", None)
    name = str(getattr(config, "name_or_path", "")).rstrip("/")
    if os.path.isabs(name):
        name = os.path.basename(name)
    return name or type(model).__name__


def _environment(value: Any) -> dict[str, Any]:
    from importlib.metadata import version

    if not hasattr(value, "state_dict"):
        return {}
    packages = ("torch", "transformers", "sentence-transformers")
    return {package: version(package) for package in packages} | {"device": str(value.device)}


def _refused(name: str, message: str) -> InputError:
    return InputError(Problem(name, None, message))
