"""Selection, truncation and labelling of dialogues for a benchmark (paper, sections 3.1, 3.4)."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from giccs.benchmark.items import Dialogue, Turn
from giccs.preparation.selection.decisions import Decision
from giccs.preparation.selection.rules import DialogueRule, SamplingRule, SelectionRules

__all__ = ["Selection", "select"]


@dataclass(frozen=True)
class Selection:
    """Selected dialogues in input order, with all decisions."""

    dialogues: tuple[Dialogue, ...]
    decisions: tuple[Decision, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _TrimmedDialogue:
    """A dialogue without the turns before its selected start."""

    dialogue: Dialogue
    dropped: int
    turns: tuple[Turn, ...]


def select(dialogues: Sequence[Dialogue], rules: SelectionRules) -> Selection:
    """Sample dialogues according to `rules`, truncate them to their first turns, and label them.

    Dialogues are sampled per source and domain. The sample depends on the seed, the source and domain, and
    the order of their dialogues, but not on other dialogues. Raises ValueError, with one line per problem, if
    a requested number of dialogues is not available or the rules refer to unknown dialogues or domains.
    """
    faults = _unknown_reference_faults(dialogues, rules)
    faults += [
        f"dialogue {dialogue.dialogue_id} has candidates; expected dialogues without candidates"
        for dialogue in dialogues
        if dialogue.candidates
    ]
    reasons: dict[str, str] = {}
    lengths_by_dialogue = _choose_dialogues(dialogues, rules, reasons, faults)
    if faults:
        raise ValueError("\n".join(faults))
    selected_pairs = []
    decisions: list[Decision] = []
    for dialogue in dialogues:
        name = dialogue.dialogue_id
        if name in lengths_by_dialogue:
            selected, dialogue_decisions = _finish_dialogue(*lengths_by_dialogue[name], rules)
            selected_pairs.append((dialogue, selected))
            decisions += dialogue_decisions
        else:
            details = {"reason": reasons.get(name, "not drawn"), "turns": len(dialogue.turns)}
            decisions.append(Decision(name, "left out", details))
    kept_ones = tuple(selected_dialogues for _, selected_dialogues in selected_pairs)
    return Selection(kept_ones, tuple(decisions), tuple(_label_warnings(selected_pairs, rules)))


def _choose_dialogues(
    dialogues: Sequence[Dialogue], rules: SelectionRules, reasons: dict[str, str], faults: list[str]
) -> dict[str, tuple[_TrimmedDialogue, int]]:
    """Return the sampled dialogues with their lengths; shortages are added to `faults`."""
    groups: dict[tuple[str, str], list[Dialogue]] = defaultdict(list)
    for dialogue in dialogues:
        groups[dialogue.source, dialogue.domain].append(dialogue)
    lengths_by_dialogue: dict[str, tuple[_TrimmedDialogue, int]] = {}
    earlier: dict[tuple[str, ...], str] = {}
    for (source, domain), members in groups.items():
        rule = next(
            (
                candidate_rule
                for candidate_rule in rules.sampling
                if candidate_rule.fits(source, domain)
            ),
            None,
        )
        usable = _usable_dialogues(members, rule, rules.dialogue_rules, earlier, reasons)
        if rule is None:
            continue
        order = [usable[n] for n in _random_order(rules.seed, source, domain, len(usable))]
        drawn_dialogues, missing = _draw_dialogues(order, rule)
        faults += [
            _shortage_message(source, domain, rule, length, number, len(members))
            for length, number in missing.items()
        ]
        lengths_by_dialogue |= {
            trimmed.dialogue.dialogue_id: (trimmed, length) for trimmed, length in drawn_dialogues
        }
    return lengths_by_dialogue


def _unknown_reference_faults(dialogues: Sequence[Dialogue], rules: SelectionRules) -> list[str]:
    """Return a message for each dialogue, domain or turn in the rules that does not exist."""
    ids = {dialogue.dialogue_id for dialogue in dialogues}
    pairs = {(dialogue.source, dialogue.domain) for dialogue in dialogues}
    available = ", ".join(sorted(" / ".join(pair) for pair in pairs))
    faults = [f"unknown dialogue {name} in the rules" for name in rules.dialogue_rules.keys() - ids]
    for rule in rules.sampling:
        domains = rule.domain or (None,)
        faults += [
            f"no dialogue has the source {rule.source or 'any'} and the domain {domain or 'any'} in the "
            f"rules; existing pairs are {available}"
            for domain in domains
            if not any(rule.fits(*pair) and domain in (None, pair[1]) for pair in pairs)
        ]
    by_id = {dialogue.dialogue_id: dialogue for dialogue in dialogues}
    for name, dialogue_rule in rules.dialogue_rules.items():
        turns = len(by_id[name].turns) if name in by_id else 0
        faults += [
            f"dialogue {name} has no turn {number} to edit; it has {turns}"
            for number in dialogue_rule.edit
            if turns and number > turns
        ]
    return sorted(faults)


def _random_order(seed: int, source: str, domain: str, size: int) -> list[int]:
    digest = hashlib.sha256(f"{source}\0{domain}".encode()).digest()
    rng = np.random.default_rng([seed, int.from_bytes(digest[:8])])
    return [int(n) for n in rng.permutation(size)]


def _usable_dialogues(
    members: Iterable[Dialogue],
    rule: SamplingRule | None,
    dialogue_rules: Mapping[str, DialogueRule],
    earlier: dict[tuple[str, ...], str],
    reasons: dict[str, str],
) -> list[_TrimmedDialogue]:
    """Return the dialogues that can be truncated to one of the lengths; other dialogues are added to
    `reasons`."""
    usable = []
    for dialogue in members:
        name = dialogue.dialogue_id
        trimmed = _trim(dialogue, rule.start if rule else "any")
        if name in dialogue_rules and dialogue_rules[name].leave_out:
            reasons[name] = dialogue_rules[name].leave_out
        elif rule is None:
            reasons[name] = "no rule for its source and domain"
        elif trimmed is None:
            reasons[name] = f"no {rule.start} turn"
        elif len(trimmed.turns) < min(rule.lengths):
            reasons[name] = f"too short: {len(trimmed.turns)} turns, {min(rule.lengths)} required"
        elif not _possible_lengths(trimmed, rule):
            reasons[name] = f"no {rule.last} turn at the end for any of the lengths"
        else:
            first = tuple(" ".join(t.text.split()) for t in trimmed.turns[: min(rule.lengths)])
            first_name = earlier.setdefault(first, name)
            if first_name == name:
                usable.append(trimmed)
            else:
                reasons[name] = f"its first {min(rule.lengths)} turns are those of {first_name}"
    return usable


def _trim(dialogue: Dialogue, start: str) -> _TrimmedDialogue | None:
    """Return the dialogue from the first turn of the speaker `start`, or None if there is no such turn."""
    speakers = [turn.speaker for turn in dialogue.turns]
    if start == "any":
        return _TrimmedDialogue(dialogue, 0, dialogue.turns)
    if start not in speakers:
        return None
    first = speakers.index(start)
    return _TrimmedDialogue(dialogue, first, dialogue.turns[first:])


def _possible_lengths(trimmed: _TrimmedDialogue, rule: SamplingRule) -> list[int]:
    """Return the lengths to which the dialogue can be truncated."""
    return [
        length
        for length in rule.lengths
        if len(trimmed.turns) >= length and rule.last in ("any", trimmed.turns[length - 1].speaker)
    ]


def _draw_dialogues(
    order: Sequence[_TrimmedDialogue], rule: SamplingRule
) -> tuple[list[tuple[_TrimmedDialogue, int]], Mapping[int, int]]:
    """Return dialogues with their lengths, and the number of missing dialogues by length.

    A dialogue sampled for one length is reassigned to another if this increases the total, so the number of
    dialogues is maximal.
    """
    possible = [set(_possible_lengths(trimmed, rule)) for trimmed in order]
    length_by_index: dict[int, int] = {}
    missing: Counter[int] = Counter()
    if rule.dialogues is None:
        complete_draw: dict[int, int] = {}
        while all(_draw_one(length, possible, length_by_index, set()) for length in rule.lengths):
            complete_draw = dict(length_by_index)
        length_by_index = complete_draw
    else:
        share, remainder = divmod(rule.dialogues, len(rule.lengths))
        for index, length in enumerate(rule.lengths):
            for _ in range(share + (index < remainder)):
                missing[length] += not _draw_one(length, possible, length_by_index, set())
    return [(order[n], length) for n, length in sorted(length_by_index.items())], +missing


def _draw_one(
    length: int, possible: Sequence[set[int]], length_by_index: dict[int, int], tried: set[int]
) -> bool:
    """Sample another dialogue for a length, reassigning sampled dialogues if necessary; return success."""
    tried.add(length)
    for n, lengths in enumerate(possible):
        if n not in length_by_index and length in lengths:
            length_by_index[n] = length
            return True
    for n, other_length in list(length_by_index.items()):
        if (
            other_length not in tried
            and length in possible[n]
            and _draw_one(other_length, possible, length_by_index, tried)
        ):
            length_by_index[n] = length
            return True
    return False


def _shortage_message(
    source: str, domain: str, rule: SamplingRule, length: int, missing: int, members: int
) -> str:
    conditions = [f"start with a {rule.start} turn"] if rule.start != "any" else []
    conditions += [f"end with a {rule.last} turn"] if rule.last != "any" else []
    condition_text = f" that {' and '.join(conditions)}" if conditions else ""
    return (
        f"{source or 'no source'} / {domain or 'no domain'}: {missing} of the dialogues of {length} "
        f"turns{condition_text} are missing; {rule.dialogues} requested, {members} available"
    )


def _finish_dialogue(
    trimmed: _TrimmedDialogue, length: int, rules: SelectionRules
) -> tuple[Dialogue, list[Decision]]:
    """Truncate, edit and label a dialogue; return it with the decisions."""
    dialogue = trimmed.dialogue
    name = dialogue.dialogue_id
    dialogue_rule = rules.dialogue_rules.get(name, DialogueRule())
    origin = {"source": dialogue.source, "domain": dialogue.domain, "n_turns": length}
    decisions = [Decision(name, "kept", origin)]
    if trimmed.dropped:
        decisions.append(Decision(name, "start dropped", {"turns": trimmed.dropped}))
    if n_dropped := len(trimmed.turns) - length:
        decisions.append(Decision(name, "cut", {"to": length, "turns_dropped": n_dropped}))
    turns = list(trimmed.turns[:length])
    for number, text in sorted(dialogue_rule.edit.items()):
        index = number - 1 - trimmed.dropped
        if 0 <= index < length:
            edit_details = {"turn": number, "from": turns[index].text, "to": text}
            turns[index] = replace(turns[index], text=text)
            decisions.append(Decision(name, "edited", edit_details))
        else:
            decisions.append(Decision(name, "edit not needed", {"turn": number, "why": "not kept"}))
    original = dialogue.original_domain or dialogue.domain
    label = dialogue_rule.domain or rules.relabel.get(dialogue.domain, dialogue.domain)
    if label != dialogue.domain:
        by = "dialogue" if dialogue_rule.domain else "table"
        decisions.append(
            Decision(name, "relabelled", {"from": dialogue.domain, "to": label, "by": by})
        )
    selected = replace(
        dialogue,
        turns=tuple(turns),
        domain=label,
        original_domain=original if rules.has_labels else dialogue.original_domain,
    )
    return selected, decisions


def _label_warnings(
    selected_pairs: Sequence[tuple[Dialogue, Dialogue]], rules: SelectionRules
) -> Iterator[str]:
    """Yield warnings about unlabelled domains and unused labels, given dialogues before and after
    labelling."""
    if not rules.has_labels:
        return
    labels = set(rules.relabel.values()) | {
        dialogue_rule.domain for dialogue_rule in rules.dialogue_rules.values()
    }
    unlabelled = Counter(after.domain for _, after in selected_pairs if after.domain not in labels)
    for domain, times in sorted(unlabelled.items()):
        yield f"{times} dialogues keep the domain {domain!r}; no label in the rules"
    for name in sorted(rules.relabel.keys() - {before.domain for before, _ in selected_pairs}):
        yield f"relabel: no selected dialogue has the domain {name!r}"
