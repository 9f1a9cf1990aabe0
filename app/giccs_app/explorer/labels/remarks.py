"""German translations of the remarks that computations return with their numbers, in English.

The remarks are those of terminal, files and report; unknown ones remain in English.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from giccs_app.explorer.labels import current_language

UNITS: Mapping[str, str] = {
    "annotators": "Annotierende",
    "dialogues": "Dialoge",
    "groups": "Gruppen",
    "items": "Items",
    "pairs": "Paare",
    "questions": "Fragen",
    "resamples": "Stichproben",
    "tuples": "Tupel",
}
OUTCOMES: Mapping[str, str] = {
    "are refusals": "sind Ablehnungen",
    "were cut at the limit of tokens": "wurden an der Grenze der Tokens abgeschnitten",
    "name no option, or several": "nennen keine oder mehrere Optionen",
}
"""Outcomes of generated answers without a choice."""
WORDS: Mapping[str, str] = {
    **UNITS,
    **OUTCOMES,
    "forwards": "vorwärts",
    "backwards": "rückwärts",
    "forwards and backwards": "vorwärts und rückwärts",
    "their group": "in der Gruppe",
    "all items": "unter allen Items",
}
"""Texts of the groups of a pattern that have a translation."""
UNIT = rf"(?P<unit>{'|'.join(UNITS)})"
PHRASES: Mapping[str, str] = {
    rf"(?P<n>\d+) {UNIT}: the interval is approximate below (?P<m>\d+)": (
        "{n} {unit}: Das Intervall ist bei weniger als {m} nur eine Näherung"
    ),
    rf"(?P<n>\d+) {UNIT}: no interval, which needs (?P<m>\d+)": (
        "{n} {unit}: kein Intervall, für das {m} nötig sind"
    ),
    rf"(?P<n>\d+) {UNIT} that differ from the others: no interval, which needs (?P<m>\d+)": (
        "{n} {unit} mit anderen Ergebnissen: kein Intervall, für das {m} nötig sind"
    ),
    rf"(?P<n>\d+) {UNIT}, of unequal size \(effectively (?P<m>[\d.]+)\): the interval is approximate": (
        "{n} {unit} von ungleicher Größe (effektiv {m}): Das Intervall ist ungenau"
    ),
    r"items were judged between (?P<n>\d+) and (?P<m>\d+) times: the interval is approximate, and the "
    r"ceiling may be too high by more than 0\.005": (
        "Items wurden zwischen {n}- und {m}-mal beurteilt: Das Intervall ist ungenau, und die Obergrenze "
        "kann um mehr als 0.005 zu hoch sein"
    ),
    r"the ranks are uninformative: (?P<n>[\d.]+) of (?P<m>[\d.]+) possible ranks per item; more annotators "
    r"make them shorter": (
        "die Ränge sagen wenig aus: {n} von {m} möglichen Rängen je Item; mehr Annotierende verkürzen sie"
    ),
    r"(?P<n>\d+) items have no interval: fewer than (?P<m>\d+) clusters per item": (
        "{n} Items haben kein Intervall: weniger als {m} Cluster pro Item"
    ),
    r"ranks within (?P<unit>their group|all items), 1 for the highest score: those that intervals permit "
    r"which hold for all items of a group at once with 95 % \(Bonferroni\); items whose intervals overlap "
    r"may have either order": (
        "Ränge {unit}, 1 für den höchsten Wert: diejenigen, die Intervalle zulassen, die mit 95 % für alle "
        "Items einer Gruppe zugleich gelten (Bonferroni); Items mit überlappenden Intervallen können in "
        "beiden Reihenfolgen stehen"
    ),
    r"ranks within (?P<unit>their group|all items), 1 for the highest score: those that tests permit which "
    r"hold for all pairs of a group at once with 95 % \(Holm\); items whose difference is not significant "
    r"may have either order": (
        "Ränge {unit}, 1 für den höchsten Wert: diejenigen, die Tests zulassen, die mit 95 % für alle Paare "
        "einer Gruppe zugleich gelten (Holm); Items ohne signifikanten Unterschied können in beiden "
        "Reihenfolgen stehen"
    ),
    r"(?P<n>\d+) items have no ranks, for lack of a standard error above 0; they may have any rank, which "
    r"widens the ranks of the others of their group": (
        "{n} Items haben keine Ränge, weil ihnen ein Standardfehler über 0 fehlt; sie können jeden Rang "
        "haben, was die Ränge der übrigen Items ihrer Gruppe erweitert"
    ),
    r"the items of (?P<n>\d+) groups are not all connected by judgments; those that are not may have any "
    r"order": (
        "Die Items von {n} Gruppen sind nicht alle durch Urteile verbunden; unverbundene können in jeder "
        "Reihenfolge stehen"
    ),
    rf"undefined without some of the {UNIT}: no interval": (
        "kein Intervall: ohne einige der {unit} nicht definiert"
    ),
    rf"(?:undefined or )?at its bound without some of the {UNIT}: no interval": (
        "kein Intervall: ohne einige der {unit} am Rand des Wertebereichs oder nicht definiert"
    ),
    r"(?P<n>\d+) items; a correlation requires two": "{n} Items; für eine Korrelation sind zwei nötig",
    r"(?P<n>\d+) predictions are NaN": "{n} Vorhersagen sind NaN",
    r"(?P<n>\d+) dialogues excluded:": "{n} Dialoge ausgeschlossen:",
    r"1 prediction is infinite \(that of item (?P<item>.+)\): Pearson's r is undefined": (
        "1 Vorhersage ist unendlich (die von Item {item}): Pearsons r ist nicht definiert"
    ),
    r"(?P<n>\d+) predictions are infinite \(the first is that of item (?P<item>.+)\): Pearson's r is "
    r"undefined": (
        "{n} Vorhersagen sind unendlich (die erste ist die von Item {item}): Pearsons r ist nicht definiert"
    ),
    r"(?P<n>\d+) dialogues of 2 or 3 items, rarely in another order: the interval may be too narrow": (
        "{n} Dialoge mit 2 oder 3 Items, selten in anderer Reihenfolge: das Intervall kann zu schmal sein"
    ),
    r"skewed values or outliers \(skewness (?P<n>[-.\d]+), excess kurtosis (?P<m>[-.\d]+)\): the interval "
    r"may be too narrow, read ρ": (
        "schiefe Werte oder Ausreißer (Schiefe {n}, Exzess {m}): Das Intervall kann zu schmal sein; "
        "aussagekräftiger ist ρ"
    ),
    r"all predictions are equal": "alle Vorhersagen sind gleich",
    r"all scores are equal": "alle Werte sind gleich",
    r"predictions or scores are constant, or there is one item": (
        "Vorhersagen oder Werte sind konstant, oder es gibt nur ein Item"
    ),
    r"predictions of one of the two, or scores, are constant, or there is one item": (
        "Vorhersagen eines der beiden oder Werte sind konstant, oder es gibt nur ein Item"
    ),
    r"no interval: not resampled": "kein Intervall: nicht berechnet",
    r"not computed": "nicht berechnet",
    r"all judgments are of one annotator": "alle Urteile stammen von einer Person",
    r"the correlation is negative: Spearman-Brown is undefined": (
        "die Korrelation ist negativ: Spearman–Brown ist nicht definiert"
    ),
    r"annotation: reproducibility with other answers to the same tuples "
    r"\(the split of most published figures\)": (
        "annotation: Reproduzierbarkeit mit anderen Antworten zu denselben Tupeln (die Teilung der meisten "
        "veröffentlichten Zahlen)"
    ),
    r"tuple: reproducibility with other tuples of the same items": (
        "tuple: Reproduzierbarkeit mit anderen Tupeln derselben Items"
    ),
    r"annotator: reproducibility with other annotators": (
        "annotator: Reproduzierbarkeit mit anderen Annotierenden"
    ),
    r"(?P<n>\d+) questions have several correct options \(tied highest scores\)": (
        "{n} Fragen haben mehrere richtige Optionen (gleiche höchste Werte)"
    ),
    rf"(?P<n>\d+) of (?P<m>\d+) answers (?P<unit>{'|'.join(OUTCOMES)})": (
        "{n} von {m} Antworten {unit}"
    ),
    r"they count as wrong": "Sie zählen als falsch",
    r"MTLD of (?P<n>\d+)-turn (?P<unit>[^:]+):": "MTLD von {unit}, {n} Beiträge:",
    r"too short: read (?P<unit>forwards and backwards|forwards|backwards), its (?P<n>\d+) words "
    r"\((?P<m>\d+) different\) complete no factor": (
        "zu kurz: {unit} gelesen vervollständigen die {n} Wörter ({m} verschiedene) keinen Faktor"
    ),
    r"all, by (?P<n>annotation|tuple|annotator):": "alle, {n}:",
    r"all:": "alle:",
}
"""Pattern of a phrase -> German text with the groups of the pattern."""
PATTERNS = [(re.compile(rf"(?<!\w){phrase}"), text) for phrase, text in PHRASES.items()]


def local_remark(remark: str, language: str = "") -> str:
    """Return a remark in a language, by default the current one.

    >>> local_remark("all: 5 annotators: the interval is approximate below 20", "de")
    'alle: 5 Annotierende: Das Intervall ist bei weniger als 20 nur eine Näherung'
    """
    if (language or current_language()) != "de":
        return remark
    for pattern, text in PATTERNS:
        remark = pattern.sub(partial(_filled, text), remark)
    return remark


def _filled(text: str, match: re.Match[str]) -> str:
    return text.format(
        **{name: WORDS.get(value, value) for name, value in match.groupdict().items()}
    )
