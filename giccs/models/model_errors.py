"""Exceptions of frameworks while a model runs, as one line with the model, the cause and a remedy.

They are raised by code outside of giccs, in any class: an index out of range in an embedding, a chat template
that refuses a message, a function of the user. The methods of `COMPUTATIONS` of all models report them, see
`giccs.models.abilities.Model`. The original exception is the ``__cause__`` of the reported one, and in the
log of ``--verbose``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from json import JSONDecodeError
from typing import Any

from bws.base.options import flag_of
from bws.base.problems import InputError, Problem
from giccs.models.checkpoint import first_line

COMPUTATIONS = frozenset(
    [
        "environment", "fits", "fits_prompts", "generate", "has_letters", "letter_responses",
        "order_scores", "pair_scores", "render_chat", "respond", "score", "side_vectors", "vectors",
    ]
)  # fmt: skip
"""Methods of models that call frameworks."""
MEMORY_PATTERN = re.compile(
    r"alloc|memory|failed to map segment|could not create a primitive", re.IGNORECASE
)
"""Messages of PyTorch, CUDA, the dynamic loader and oneDNN."""
MEMORY_REMEDY = "use a smaller --batch-size, --dtype bfloat16, --quantise, or another --device"
REMEDIES = {
    r"index.* out of (range|bounds)|device-side assert": (
        "its tokenizer or its maximum number of tokens may not match its weights"
    ),
    r"^Template|^UndefinedError|^SecurityError": (
        "its chat template does not support this prompt; omit --chat-template"
    ),
    r"not implemented for|same dtype|scalar type|overflow": "try --dtype float32",
    r"CUDA|cuDNN|CUBLAS|MPS|HIP": "try --device cpu",
}
"""Pattern of ``CLASS: MESSAGE`` of an exception -> remedy."""
OTHER_REMEDY = "it may require inputs, options or package versions other than these"

log = logging.getLogger(__name__)


class UnsupportedOptionError(InputError):
    """Options of `giccs.models.ModelOptions` that a model does not support.

    >>> print(UnsupportedOptionError("baseline:chance", "returns no vectors", "dimensions", "embeddings"))
    baseline:chance: returns no vectors; omit --dimensions and --embeddings
    """

    def __init__(self, name: str, reason: str, *options: str) -> None:
        self.name, self.reason, self.options = name, reason, options
        super().__init__(Problem(name, None, f"{reason}; omit {self.flags}"))

    @property
    def flags(self) -> str:
        """Their names on the command line."""
        return " and ".join(map(flag_of, self.options))


class ModelFaultError(ValueError):
    """A fault of a model that giccs detects; the message is a predicate whose subject is the model."""


class ModelMemoryError(MemoryError):
    """A model did not fit into memory; the message names it."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}; {MEMORY_REMEDY}")
        self.name, self.reason = name, reason

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what `pickle` needs."""
        return type(self), (self.name, self.reason)


def is_memory_error(error: BaseException) -> bool:
    """Return whether an error is an out-of-memory error, which frameworks report as plain exceptions.

    >>> is_memory_error(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"))
    True
    >>> is_memory_error(ValueError("the memory of the dialogue"))
    False
    """
    return isinstance(error, MemoryError | SystemError) or (
        isinstance(error, ImportError | RuntimeError) and bool(MEMORY_PATTERN.search(str(error)))
    )


def out_of_memory(error: BaseException) -> bool:
    """Return whether a computation ran out of memory, so that a smaller one may fit.

    torch raises a plain RuntimeError on the CPU.
    """
    words = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(word in str(error).lower() for word in words)


@contextmanager
def reported_errors(name: str) -> Iterator[None]:
    """Within the block, raise InputError for exceptions of frameworks, and ModelMemoryError without memory.

    name: of the model. Errors of the system, such as a full disk, and missing packages are unchanged, because
    commands report them.
    """
    try:
        yield
    except (InputError, ModelMemoryError, ModuleNotFoundError):
        raise
    except ModelFaultError as error:
        raise InputError(Problem(name, None, str(error))) from error
    except Exception as error:  # Frameworks raise many kinds of exceptions.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        log.debug("%s raised an exception", name, exc_info=True)
        cause = _cause(error)
        if is_memory_error(error):
            raise ModelMemoryError(name, cause) from error
        message = f"cannot process the inputs ({cause}); {_remedy(cause)}; see --verbose"
        raise InputError(Problem(name, None, message)) from error


@contextmanager
def reported_damage(name: str) -> Iterator[None]:
    """Within the block, raise InputError for the exceptions that files with unexpected content cause.

    Such files contain other types of JSON values than those that the library writes, or no JSON at all.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, JSONDecodeError, UnicodeDecodeError) as error:
        log.debug("%s raised an exception", name, exc_info=True)
        message = f"its configuration has an unexpected content ({_cause(error)})"
        raise InputError(Problem(name, None, f"{message}; copy or save it again")) from error


def report_errors(model_class: type) -> None:
    """Replace the methods of a class that call frameworks by methods with `reported_errors`."""
    for name in COMPUTATIONS & vars(model_class).keys():
        setattr(model_class, name, _reporting(vars(model_class)[name]))


def _reporting(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def reporting(self: Any, *arguments: Any, **settings: Any) -> Any:
        with reported_errors(self.name):
            return method(self, *arguments, **settings)

    return reporting


def _cause(error: Exception) -> str:
    """Return the class and the first line of the message of an exception.

    >>> _cause(IndexError("index out of range in self")), _cause(KeyError("a")), _cause(MemoryError())
    ('IndexError: index out of range in self', "KeyError: 'a'", 'MemoryError')
    """
    name, line = type(error).__name__, first_line(error)
    return name if line == name else f"{name}: {line.rstrip('.')}"


def _remedy(cause: str) -> str:
    matches = (remedy for pattern, remedy in REMEDIES.items() if re.search(pattern, cause))
    return next(matches, OTHER_REMEDY)
