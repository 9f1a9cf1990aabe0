"""giccs csts errors: labels that contradict the answers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from bws.base.charts import check_chart_path, write_chart
from bws.base.commands import Console, command
from bws.base.options import INPUT, MODEL, OUTPUT, SEED, Choice
from bws.base.problems import InputError, Problem
from bws.base.tables import tabulated
from bws.base.text import display_name, read_bytes, write_atomic
from bws.cli.options import drawn_figure
from giccs.cli.options import set_offline_mode
from giccs.cli.remarks import unknown_token_warning
from giccs.csts.errors.detection import DISTRIBUTIONS
from giccs.measures.formatting import few_clusters_note, interval
from giccs.report.model_names import cut_end

if TYPE_CHECKING:
    from bws.stats.estimates import Estimate
    from giccs.csts.errors.answers import Truths, Vectors
    from giccs.csts.errors.detection import Findings
    from giccs.csts.errors.evaluation import Evaluation
    from giccs.models.abilities import Model

BEST_KS = {"even": 3, "original": 10, "reannotated": 10}
"""The paper's best K (Table 2): used by auto without reannotated labels."""
MAX_ROWS_SHOWN = 20
CLIPPED = 24
"""Maximum number of characters of an answer in a table; --json and -o have complete answers."""
DISTRIBUTION_TITLES = (
    "distribution", "K", "precision", "recall", "F1 [95 %]", "MCC [95 %]", "Spearman", "F1 at K = 1",
)  # fmt: skip


def _ks(
    ctx: click.Context, parameter: click.Parameter, value: str
) -> tuple[int, ...] | None:  # fmt: skip
    if value == "auto":
        return None
    match = re.fullmatch(r"(\d{1,4})(?:\.\.(\d{1,4}))?", value)
    low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= low <= high:
        raise click.BadParameter(
            f"{value!r} is invalid; expected auto, an integer from 1, or a range such as 2..20"
        )
    return tuple(range(low, high + 1))


@command(
    "giccs csts errors",
    example="""
    giccs csts errors answers.csv --model package:minilm -o suspicious.csv
    giccs csts errors answers.csv --model package:minilm --truth csts-val-reannotated.tsv --figure curve.svg
    giccs csts errors answers.csv --model encoder:./my-model --distribution even --k 3 --json
    """,
)
@click.argument("answers", type=INPUT, metavar="ANSWERS.csv")
@click.option(
    "--model", "model_name", required=True, type=MODEL, metavar="MODEL",
    help="Encoder of the answers, named as for giccs eval.",
)  # fmt: skip
@click.option(
    "--k", "ks", default="auto", show_default=True, callback=_ks, metavar="auto|N|A..B",
    help="Number of clusters. auto is 1..20 with --truth; otherwise the paper's best: 10, 10, and "
         "3 for even.",
)  # fmt: skip
@click.option(
    "--distribution",
    type=Choice(DISTRIBUTIONS),
    help="Distribution that maps ranks to labels.  [default: reannotated with --truth, else original]",
)
@click.option(
    "--truth", type=INPUT, metavar="FILE",
    help="Reannotated labels (uid, reannotated-label), for selecting K and evaluating the detection.",
)  # fmt: skip
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    metavar="FILE",
    help="Write the suspicious instances to a CSV file.",
)
@click.option(
    "--figure",
    type=OUTPUT,
    metavar="FILE",
    help="Also draw F1 over K (Figure 10): .svg, .png, .json.",
)
@click.option(
    "--seed", type=SEED, default=0, show_default=True,
    help="Seed of k-means, of the halves and of the intervals.",
)  # fmt: skip
@click.option(
    "--offline", is_flag=True, help="Use only the local cache, without access to the hub."
)
def errors(
    console: Console,
    answers: str,
    model_name: str,
    ks: tuple[int, ...] | None,
    distribution: str | None,
    truth: str | None,
    output: str | None,
    figure: str | None,
    seed: int,
    offline: bool,
) -> None:
    """Find labels that contradict the answers, as in L-CSTS (section 4.2).

    ANSWERS.csv has the columns uid, label (1 to 5), answer1, answer2 and, optionally, condition. The answer
    pairs are clustered into topics. Within each topic, pairs are ranked by the similarity of their answers,
    and the ranks are mapped to labels. An instance is suspicious if its label differs from this rank label.

    With --truth, half of the reannotated instances select K and the other half evaluates the detection,
    beside a baseline that calls every label an error. The suspicious instances are then those of the whole
    file for this K.

    Also printed are the correlations of the answers' similarities and of the original labels with the
    reannotated ones, as in section 4.1.

    --json: evaluation, truth_correlations (both null without --truth), k, distribution, suspicious (one
    object per instance), clusters, left_out, signature.
    """
    _check_call(ks, distribution, truth, figure)
    distribution_name = distribution or ("reannotated" if truth else "original")
    joined = _read(console, answers, truth)
    model = _open(model_name, seed, offline)
    from giccs.csts.errors.answers import encode
    from giccs.csts.errors.detection import find_suspects

    with unknown_token_warning(console, model_name, display_name(answers)):
        vectors = encode(model, joined.pairs, display_name(answers), console.progress)
    try:
        evaluation = _evaluated(console, joined, vectors, ks, seed) if truth else None
        to_truth = _truth_correlations(joined, vectors, seed) if truth else None
        k = (
            evaluation.outcomes[distribution_name].k
            if evaluation
            else _single(ks, distribution_name, vectors)
        )
        findings = find_suspects(
            joined.pairs, vectors, k, distribution_name, truth=joined.truth, seed=seed
        )
    except ValueError as error:
        raise InputError(Problem(display_name(answers), None, str(error))) from None
    _write(console, findings, evaluation, output, figure)
    document = {
        "k": k,
        "distribution": distribution_name,
        "instances": len(joined.pairs),
        "left_out": {"invalid_condition": joined.invalid, "truth_without_answers": joined.unused},
        "evaluation": evaluation.document() if evaluation else None,
        "truth_correlations": _documents(to_truth) if to_truth else None,
        "clusters": [_cluster_document(cluster) for cluster in findings.clusters],
        "suspicious": [_suspect_document(suspect) for suspect in findings.suspects],
        "signature": _signature(answers, truth, model, seed),
    }
    text = (
        _text(findings, evaluation, to_truth, k, distribution_name, document)
        if not console.as_json
        else ""
    )
    console.answer(text, document)


def _check_call(
    ks: tuple[int, ...] | None, distribution: str | None, truth: str | None, figure: str | None
) -> None:
    if truth is None:
        if distribution == "reannotated":
            raise click.UsageError("--distribution reannotated requires --truth FILE")
        if figure:
            raise click.UsageError("--figure shows the evaluation and requires --truth FILE")
        if ks and len(ks) > 1:
            raise click.UsageError("a range for --k requires --truth FILE to select from it")
    needed = {"sklearn": ("scikit-learn", "csts")}
    if figure:
        check_chart_path(figure)
        needed |= {"altair": ("Altair", "charts"), "vl_convert": ("vl-convert", "charts")}
    for module, (name, extra) in needed.items():
        if find_spec(module) is None:
            message = f"needs {name}; install it with: pip install 'giccs[{extra}]'"
            raise click.ClickException(message)


def _read(console: Console, answers: str, truth: str | None) -> Truths:
    """Read both files, and report skipped instances."""
    from giccs.csts.data import read_relabelled
    from giccs.csts.errors.answers import read_answers, with_truth

    joined = with_truth(read_answers(answers), read_relabelled(truth) if truth else {})
    if truth:
        for count, description in (
            (joined.invalid, "instances are skipped: their condition is invalid (-1)"),
            (len(joined.pairs) - len(joined.known_rows), "instances have no reannotated label"),
            (joined.unused, "reannotated labels have no answers"),
        ):
            if count:
                console.note(f"{count} {description}")
    return joined


def _open(name: str, seed: int, offline: bool) -> Model:
    set_offline_mode(offline)
    from giccs.models import ModelOptions, open_model

    return open_model(name, ModelOptions(seed=seed, offline=offline))


def _evaluated(
    console: Console,
    joined: Truths,
    vectors: Vectors,
    ks: tuple[int, ...] | None,
    seed: int,
) -> Evaluation:
    import numpy as np

    from giccs.csts.errors.evaluation import PAPER_KS, evaluate

    known_rows = joined.known_rows
    labels = np.array([joined.pairs[row].label for row in known_rows], dtype=np.intp)
    evaluation = evaluate(
        vectors.rows(known_rows), labels, joined.truth[known_rows], ks or PAPER_KS,
        seed=seed, progress=console.progress,
    )  # fmt: skip
    if evaluation.ks_left_out:
        left = ", ".join(map(str, evaluation.ks_left_out))
        console.note(f"K = {left} skipped: the training half has fewer distinct answer pairs")
    return evaluation


def _documents(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: estimate.document() for name, estimate in estimates.items()}


def _truth_correlations(joined: Truths, vectors: Vectors, seed: int) -> Mapping[str, Estimate]:
    import numpy as np

    from giccs.csts.errors.evaluation import truth_correlations

    rows = joined.known_rows
    labels = np.array([joined.pairs[row].label for row in rows], dtype=np.intp)
    uids = [joined.pairs[row].uid.rpartition(":")[2] for row in rows]
    # The uids of L-CSTS are indices of rows, of which 2i and 2i + 1 share their sentences.
    sentence_pairs = [int(uid) // 2 if uid.isdecimal() else uid for uid in uids]
    _, pair = np.unique(np.array(sentence_pairs, dtype=str), return_inverse=True)
    return truth_correlations(
        vectors.rows(rows), labels, joined.truth[rows], pair.astype(np.intp), seed=seed
    )


def _single(ks: tuple[int, ...] | None, distribution: str, vectors: Vectors) -> int:
    """Return the requested K, or else the paper's best, limited by the number of distinct pairs."""
    from giccs.csts.errors.detection import distinct

    return ks[0] if ks else min(BEST_KS[distribution], distinct(vectors.joint))


def _write(
    console: Console,
    findings: Findings,
    evaluation: Evaluation | None,
    output: str | None,
    figure: str | None,
) -> None:
    from giccs.csts.errors.detection import suspects_csv
    from giccs.csts.errors.evaluation import f1_over_k

    if output:
        write_atomic(output, suspects_csv(findings.suspects))
        console.note(f"{len(findings.suspects)} suspicious instances written to {output}")
    if figure and evaluation:
        with drawn_figure(console, "of F1 over K", figure):
            write_chart(f1_over_k(evaluation), figure)
            console.note(f"F1 over K (Figure 10) written to {figure}")


def _text(
    findings: Findings, evaluation: Evaluation | None, to_truth: Mapping[str, Estimate] | None,
    k: int, distribution: str, document: Any,
) -> str:  # fmt: skip
    settings_text = f"{distribution} distribution, K = {k}, seed {document['signature']['seed']}"
    n, suspects = len(findings.rank_labels), findings.suspects
    parts = [_measured(evaluation)] if evaluation else []
    parts += [_correlations_text(to_truth)] if to_truth else []
    parts.append(f"{len(suspects)} of {n} labels are suspicious ({settings_text}).")
    if suspects:
        parts.append(_suspects_table(findings))
    if len(suspects) > MAX_ROWS_SHOWN:
        parts.append(
            f"... and {len(suspects) - MAX_ROWS_SHOWN} more; use -o FILE or --json for all"
        )
    parts.append(_clusters_table(findings))
    return "\n\n".join(parts)


def _measured(evaluation: Evaluation) -> str:
    """Return the equivalent of Table 2 on the half that did not select K, beside the all-error baseline."""
    rows: list[Sequence[Any]] = [
        (
            result.distribution,
            result.k,
            *_cells(result.clustered),
            interval(result.clustered["spearman"], 2),
            _short(result.not_clustered["f1"]),
        )
        for result in evaluation.outcomes.values()
    ]
    rows.append(("all called errors", "", *_cells(evaluation.all_errors), "", ""))
    table = tabulated(rows, DISTRIBUTION_TITLES, "table")
    best = ", ".join(
        f"{result.distribution} {result.paper_f1:.3f} (K = {result.paper_k})"
        for result in evaluation.outcomes.values()
    )
    reasons = {
        f"{name} is undefined: {estimate.reason}."
        for outcome in evaluation.outcomes.values()
        for name, estimate in outcome.clustered.items()
        if estimate.value != estimate.value
    }
    return "\n".join(
        [
            table,
            "",
            f"K selected by F1 on {evaluation.training} instances, evaluated on "
            f"{evaluation.evaluation} others, of which {interval(evaluation.error_rate, 2)} "
            "are errors.",
            f"Highest F1 over K on the evaluation half itself, as in the paper's Table 2: {best}.",
            *sorted(reasons),
            *few_clusters_note([evaluation.error_rate, *evaluation.all_errors.values()]),
        ]
    )


def _correlations_text(to_truth: Mapping[str, Estimate]) -> str:
    from giccs.csts.errors.evaluation import PUBLISHED_CORRELATIONS

    rows = [
        (title, interval(to_truth[name]), published)
        for name, title, published in (
            ("answers", "similarity of answers", f"{PUBLISHED_CORRELATIONS['answers']:.3f}"),
            ("labels", "original label", f"{PUBLISHED_CORRELATIONS['labels']:.3f}"),
            ("difference", "difference", ""),
        )
    ]
    titles = ("with reannotated labels", "Spearman ρ [95 %]", "L-CSTS 4.1")
    notes = few_clusters_note(to_truth.values())
    return "\n".join([tabulated(rows, titles, "table"), *(["", *notes] if notes else [])])


def _cells(estimates: Any) -> tuple[str, str, str, str]:
    precision, recall, f1, mcc = (estimates[name] for name in ("precision", "recall", "f1", "mcc"))
    return _short(precision), _short(recall), interval(f1), interval(mcc)


def _short(estimate: Estimate) -> str:
    return "undefined" if estimate.value != estimate.value else f"{estimate.value:.3f}"


def _suspects_table(findings: Findings) -> str:
    rows = [
        (
            suspect.pair.uid,
            suspect.pair.label,
            suspect.rank_label,
            cut_end(suspect.pair.answer1, CLIPPED),
            cut_end(suspect.pair.answer2, CLIPPED),
            f"{suspect.similarity:.3f}",
            f"{suspect.rank:g}/{suspect.size} in {suspect.cluster}",
            ", ".join(f"{pair.uid} ({pair.label})" for pair in suspect.neighbours),
        )
        for suspect in findings.suspects[:MAX_ROWS_SHOWN]
    ]
    titles = ("uid", "label", "rank label", "answer 1", "answer 2", "similarity", "rank in cluster",
              "closest pairs (label)")  # fmt: skip
    return tabulated(rows, titles, "table")


def _clusters_table(findings: Findings) -> str:
    rows = [
        (
            cluster.number,
            cluster.pairs,
            cluster.suspicious,
            "; ".join(cut_end(answer, CLIPPED) for answer in cluster.typical),
        )
        for cluster in findings.clusters
    ]
    return tabulated(rows, ("cluster", "pairs", "suspicious", "frequent answers"), "table")


def _suspect_document(suspect: Any) -> dict[str, Any]:
    return {
        "uid": suspect.pair.uid,
        "label": suspect.pair.label,
        "rank_label": suspect.rank_label,
        "similarity": suspect.similarity,
        "cluster": suspect.cluster,
        "rank": suspect.rank,
        "cluster_size": suspect.size,
        "truth": suspect.truth,
        "neighbours": [{"uid": pair.uid, "label": pair.label} for pair in suspect.neighbours],
        "reason": suspect.reason,
    }


def _cluster_document(cluster: Any) -> dict[str, Any]:
    return {
        "cluster": cluster.number,
        "pairs": cluster.pairs,
        "suspicious": cluster.suspicious,
        "typical": list(cluster.typical),
    }


def _signature(answers: str, truth: str | None, model: Model, seed: int) -> dict[str, Any]:
    from giccs.csts.errors.detection import N_INIT

    def digest(path: str) -> str | None:
        return None if path == "-" else hashlib.sha256(read_bytes(path)).hexdigest()

    return {
        "model": model.name,
        **model.identity,
        "answers": digest(answers),
        "truth": digest(truth) if truth else None,
        "n_init": N_INIT,
        "seed": seed,
        "giccs": version("giccs"),
        "scikit-learn": version("scikit-learn"),
    }
