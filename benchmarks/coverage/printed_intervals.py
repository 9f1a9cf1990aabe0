"""All intervals that the commands print: the section in which each is simulated, or why it is in none.

An interval is a field or the value of a public function whose type is an estimate with an interval, or a
field with the lower end of one. A test finds them in the source.
"""

from __future__ import annotations

SIMULATED: dict[str, tuple[str, ...]] = {
    "scores": (
        "bws.records.Scores.low",
        "bws.scoring.intervals.compute_interval",
        "bws.scoring.methods.Interval.low",
    ),
    "ranks": ("bws.records.Scores.rank_low",),
    "prediction_powered": ("bws.scoring.prediction_powered.PoweredScores.interval",),
    "powered_correlations": (
        "giccs.measures.prediction_powered.PoweredEstimate.judge",
        "giccs.measures.prediction_powered.PoweredEstimate.people",
        "giccs.measures.prediction_powered.PoweredEstimate.powered",
        "giccs.measures.prediction_powered._Dialogues.correlations",
        "giccs.measures.prediction_powered.powered_correlations",
        "giccs.report.people_comparison.ModelEstimates.estimates",
    ),
    "powered_accuracies": ("giccs.measures.prediction_powered.powered_accuracy",),
    "alpha": (
        "bws.chance_agreement.AgreementGroup.alpha",
        "bws.history.Frame.agreement",
    ),
    "components": (
        "bws.components.Generalisability.reliability",
        "bws.components.Generalisability.root",
        "bws.components.Generalisability.variances",
        "bws.history.Frame.reliability",
    ),
    "ceiling": (
        "giccs.interface.noise_ceiling",
        "giccs.measures.ceiling.noise_ceiling",
        "giccs.measures.results.ceiling_of",
        "giccs_app.demo.pipeline.DemoResult.ceiling",
        "giccs_app.explorer.caching.ceiling_of",
    ),
    "correlations": (
        "giccs.measures.comparison.paired_correlations",
        "giccs.measures.comparison.within_dialogue_difference",
        "giccs.measures.metrics.correlations",
        "giccs.measures.metrics.difference_estimate",
        "giccs.measures.metrics.jackknife_estimate",
        "giccs.measures.metrics.jackknife_interval",
        "giccs.measures.metrics.undefined_correlations",
        "giccs.measures.metrics.with_coarse_note",
        "giccs.measures.metrics.with_excluded",
        "giccs.measures.metrics.with_offsets_note",
        "giccs.measures.metrics.with_tails_note",
        "giccs.report.setting_effects.paired_difference",
    ),
    "annotators": ("giccs.measures.annotator_uncertainty.correlations_over_annotators",),
    "annotator_effects": (
        "bws.annotator_logit.PositionEffect.low",
        "bws.annotator_logit.PositionEffects.best",
        "bws.annotator_logit.PositionEffects.worst",
        "bws.annotator_logit.ScaleEstimates.low",
        "bws.annotator_logit.position_effects",
        "bws.annotators.Annotator.positions",
        "bws.annotators.Annotator.scale_interval",
        "bws.annotators.Annotator.scale_low",
        "bws.annotators.AnnotatorReport.positions",
        "bws.model_verdict.ModelVerdict.positions",
    ),
    "comparison": (
        "giccs.measures.all_pairs.PairDifference.low",
        "giccs.report.model_comparison.RankedModel.estimate",
        "giccs.report.model_comparison.RankedModel.rank_low",
    ),
}
"""Section -> qualified names."""
NOT_SIMULATED: dict[str, tuple[str, ...]] = {
    "computed by the jackknife of alpha, from the same sums": (
        "bws.chance_agreement.AgreementGroup.observed",
        "bws.chance_agreement.AgreementGroup.strong",
    ),
    "shares and means of clusters, with Wilson's interval or Student's t; that of accuracies is in the "
    "literature (Brown, Cai and DasGupta 2001; Agresti and Min 2005), but not with few unequal clusters": (
        "bws.alternative_annotator.AlternativeAnnotatorTest.advantage",
        "bws.model_agreement.Measure.difference",
        "bws.model_agreement.Measure.model",
        "bws.model_agreement.Measure.people",
        "bws.model_audit.Consistency.best",
        "bws.model_audit.Consistency.joint",
        "bws.model_audit.Consistency.worst",
        "bws.model_audit.PositionShare.best",
        "bws.model_audit.PositionShare.worst",
        "bws.stats.clusters.clustered_mean",
        "bws.stats.clusters.clustered_share",
        "giccs.evalrank.across_models.better_postprocessed",
        "giccs.evalrank.classification.accuracy",
        "giccs.evalrank.classification.mean_accuracy",
        "giccs.measures.comparison.clustered_share",
        "giccs.measures.comparison.paired_accuracies",
        "giccs.measures.comparison.paired_shares",
        "giccs.measures.comparison.share",
        "giccs.measures.comparison.share_over_clusters",
        "giccs.preparation.expert.ExpertGroup.share",
        "giccs.preparation.expert.agreement_share",
        "giccs.tasks.generated_choices.ConditionChoices.metrics",
        "giccs.tasks.generated_choices.choice_differences",
        "giccs.tasks.generated_choices.choice_metrics",
        "giccs.tasks.questions.ConditionScores.metrics",
        "giccs.tasks.questions.average_metrics",
        "giccs.tasks.questions.history_differences",
        "giccs_app.explorer.annotation.model_data.AnnotatorAgreement.same",
        "giccs_app.explorer.annotation.model_data.people_agreement",
        "giccs_app.explorer.models.data.compare_accuracies",
    ),
    "the jackknife of correlations, for other statistics or clusters (sentence pairs, pairs of texts, "
    "families of models)": (
        "giccs.csts.answer_quality.Quality.accuracy",
        "giccs.csts.answer_quality.Quality.difference",
        "giccs.csts.answer_quality.Quality.mean",
        "giccs.csts.answer_quality.rater_agreement",
        "giccs.csts.encoders.runs.validated",
        "giccs.csts.errors.evaluation.truth_correlations",
        "giccs.csts.label_comparison.LabelComparison.difference",
        "giccs.csts.label_comparison.LabelComparison.original",
        "giccs.csts.label_comparison.LabelComparison.reannotated",
        "giccs.csts.measures.csts_metrics",
        "giccs.csts.measures.hidden_metrics",
        "giccs.csts.measures.mean_metrics",
        "giccs.csts.measures.over_pairs",
        "giccs.csts.measures.selected_on",
        "giccs.csts.tfs.Summary.agreement",
        "giccs.csts.verification.agreement",
        "giccs.csts.verification.fleiss_kappas",
        "giccs.evalrank.across_models.ranks",
        "giccs.evalrank.correlation_intervals.estimate_correlation",
        "giccs.evalrank.correlation_intervals.estimate_mean_correlation",
        "giccs.evalrank.rank_metrics.estimate_metrics",
        "giccs.evalrank.score_correlations.CorrelationCell.difference",
        "giccs.evalrank.score_correlations.CorrelationCell.rho",
        "giccs.measures.metrics.mean_difference",
        "giccs.measures.metrics.mean_over_dialogues",
        "giccs.measures.metrics.order_metrics",
    ),
    "percentiles of a bootstrap of instances": (
        "giccs.csts.errors.evaluation.Evaluation.error_rate",
        "giccs.csts.errors.evaluation.all_called_errors",
        "giccs.csts.errors.evaluation.measured",
        "giccs.measures.metrics.percentile_estimate",
    ),
    "normal intervals of means of many texts": (
        "giccs.evalrank.uniformity.alignment",
        "giccs.evalrank.uniformity.uniformity",
    ),
    "values of other functions, in a type, a file or a table": (
        "bws.stats.estimates.Estimate.low",
        "giccs.evaluation.interop.metadata.metrics_by_history",
        "bws.stats.estimates.Estimate.transformed",
        "bws.stats.estimates.Estimate.with_notes",
        "giccs.measures.results.Group.metrics",
        "giccs.measures.results.Result.metrics",
        "giccs.measures.results.TaskOutput.metrics",
        "giccs.measures.results.read_estimates",
        "giccs.report.model_comparison.HistoryEffect.with_history",
        "giccs.report.model_comparison.HistoryEffect.without_history",
        "giccs.report.model_comparison._Row.metrics",
        "giccs.report.published.ComparedNumber.ours",
        "giccs_app.explorer.models.data.metric_of",
    ),
    "no confidence intervals: bins of a histogram and the limits of an answer": (
        "giccs.description.distribution.Bin.low",
        "mturk.service.site.question_form.FormQuestion.low",
    ),
}
"""Reason -> qualified names."""


def reasons() -> str:
    """Return the reasons as a list."""
    return "\n".join(f"- {reason}" for reason in NOT_SIMULATED)
