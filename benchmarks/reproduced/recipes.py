"""All recipes, in the order of the page."""

from benchmarks.reproduced import annotators, conditions, examples, judgments, ranking, similarity

RECIPES = (
    *judgments.RECIPES,
    *annotators.RECIPES,
    *similarity.RECIPES,
    *ranking.RECIPES,
    *conditions.RECIPES,
    *examples.RECIPES,
)
