"""Access to folders on the hub: downloads, cache, and errors."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bws.base.problems import InputError, Problem

log = logging.getLogger(__name__)

DATA_FILES = ["*.jsonl", "*.jsonl.gz", "*.tsv", "data/test-*.parquet", "README.md", "eval.yaml"]
OTHER_FRAMEWORK_FILES = ["*.h5", "*.msgpack", "*.onnx", "*.ot", "*.tflite", "onnx/*", "openvino/*"]
PICKLED_WEIGHT_FILES = ["pytorch_model*.bin"]


def data_folder(name: str) -> Path:
    """Return the folder of a data set ``owner/name[@revision]``."""
    repository, _, revision = name.partition("@")
    return _snapshot(repository, "dataset", revision or None, offline=False, allow=DATA_FILES)


def model_folder(name: str, revision: str | None, *, offline: bool, packaged: str = "") -> Path:
    """Return the folder of a model; its last component is the commit of `revision`.

    packaged: name of an equal model in a package, proposed if the model is unavailable.
    """
    ignored = [*OTHER_FRAMEWORK_FILES]
    if not offline and _has_safetensors(name, revision):
        ignored += PICKLED_WEIGHT_FILES
    return _snapshot(name, "model", revision, offline=offline, ignore=ignored, alternative=packaged)


def _has_safetensors(name: str, revision: str | None) -> bool:
    """Return whether the hub lists safetensors weights; False if it is unreachable."""
    from huggingface_hub import HfApi

    try:
        files = HfApi().model_info(name, revision=revision).siblings or []
    except Exception:  # The download raises and reports the same error.
        return False
    return any(file.rfilename.endswith(".safetensors") for file in files)


def push_folder(folder: Path, name: str, *, private: bool, known_files: re.Pattern[str]) -> str:
    """Upload a folder as the data set ``owner/name``, created if needed; return the commit.

    known_files: paths that the data set may have. Its Parquet files that the folder lacks are deleted. Raises
    InputError, before any upload, if the data set has other files or another visibility, and if the hub
    refuses or cannot be reached.
    """
    from huggingface_hub import HfApi, errors

    httpx: Any = import_module("huggingface_hub.utils").httpx  # of httpx or httpx2, by its version
    api = HfApi()
    try:
        api.create_repo(name, repo_type="dataset", private=private, exist_ok=True)
        info = api.dataset_info(name)
        files = [file.rfilename for file in info.siblings or []]
        if problem := _push_problem(bool(info.private), private, files, known_files):
            raise InputError(Problem(name, None, problem))
        own_files = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
        obsolete = [file for file in files if file.endswith(".parquet") and file not in own_files]
        commit = api.upload_folder(
            repo_id=name,
            repo_type="dataset",
            folder_path=folder,
            ignore_patterns=[".*"],
            delete_patterns=obsolete,
            commit_message="Published with giccs card",
        )
    except (errors.HfHubHTTPError, errors.HFValidationError, errors.OfflineModeIsEnabled) as error:
        message = (
            f"the hub refused: {str(error).strip().splitlines()[0]}; expected owner/name of a data set "
            "that you may write (sign in with `hf auth login`)"
        )
        raise InputError(Problem(name, None, message)) from None
    except httpx.TransportError as error:
        message = f"the hub cannot be reached ({error}); nothing was published"
        raise InputError(Problem(name, None, message)) from None
    return str(commit.oid)


def _push_problem(
    is_private: bool, private: bool, files: Sequence[str], known_files: re.Pattern[str]
) -> str | None:
    """Return the problem of a data set of the hub as a target, or None."""
    if is_private != private:
        visibility = ("public", "private")
        return (
            f"is {visibility[is_private]} on the hub; expected a {visibility[private]} data set"
            f"{' (--private)' if is_private else ''}"
        )
    foreign = [file for file in files if not known_files.fullmatch(file)]
    if foreign:
        return f"contains {', '.join(foreign[:5])}, not written by giccs card; choose another name"
    return None


def _snapshot(
    name: str,
    kind: str,
    revision: str | None,
    *,
    offline: bool,
    allow: list[str] | None = None,
    ignore: list[str] | None = None,
    alternative: str = "",
) -> Path:
    from huggingface_hub import errors, snapshot_download

    def hub_error(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    log.debug("%s %s at %s: querying the hub or its cache", kind, name, revision or "the latest")
    offline = offline or os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "TRUE", "YES", "ON")
    try:
        return Path(
            snapshot_download(
                name,
                repo_type=kind,
                revision=revision,
                local_files_only=offline,
                allow_patterns=allow,
                ignore_patterns=ignore,
            )
        )
    except errors.GatedRepoError:
        message = "is gated; accept its terms on the hub, then sign in with `hf auth login`"
        raise hub_error(message) from None
    except errors.RepositoryNotFoundError:
        message = (
            f"no such {kind} on the hub, and no such file or folder here; "
            "check the spelling, or sign in with `hf auth login` if it is private"
        )
        raise hub_error(message) from None
    except errors.RevisionNotFoundError:
        message = f"has no revision {revision!r}; expected a branch, a tag or a commit"
        raise hub_error(message) from None
    except errors.HFValidationError:
        message = f"is not an existing file or folder, nor a valid hub id of a {kind} (owner/name)"
        raise hub_error(message) from None
    except (errors.LocalEntryNotFoundError, errors.IncompleteSnapshotError):
        cause = "offline" if offline else "the hub cannot be reached"
        message = (
            f"no such file or folder here; {cause}, and the {kind} is not in the cache; download it "
            f"once, where the hub can be reached: {_download_command(name, kind, revision)}"
        )
        message += f"; or use {alternative}, the same model in a package" if alternative else ""
        raise hub_error(message) from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "no"
        raise hub_error(
            f"the hub rejected the request ({status} response); try again later"
        ) from None


def _download_command(name: str, kind: str, revision: str | None) -> str:
    """Return the command that downloads a model or data set to the cache.

    >>> _download_command("owner/data", "dataset", "v1")
    'hf download owner/data --repo-type dataset --revision v1'
    """
    repository_type = "" if kind == "model" else f" --repo-type {kind}"
    return f"hf download {name}{repository_type}" + (f" --revision {revision}" if revision else "")
