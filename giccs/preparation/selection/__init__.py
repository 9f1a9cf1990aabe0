"""Which dialogues go into a benchmark, cut to which length, under which label (paper, sections 3.1, 3.4)."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from giccs.benchmark.items import Dialogue, Turn
from giccs.preparation.selection.decisions import Decision
from giccs.preparation.selection.rules import Rules, Special, Take

__all__ = ["Selection", "select"]


@dataclass(frozen=True)
class Selection:
    """The dialogues that were taken, in the order in which they came, and every decision."""

    dialogues: tuple[Dialogue, ...]
    decisions: tuple[Decision, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Trimmed:
    """A dialogue from the turn on at which it is to start."""

    dialogue: Dialogue
    dropped: int
    turns: tuple[Turn, ...]


def select(dialogues: Sequence[Dialogue], rules: Rules) -> Selection:
    """Draw dialogues at random by `rules`, cut them to their first turns, and label them.

    Dialogues of one source and domain are drawn together; the draw depends on the seed, on their source
    and domain and on their order, not on other dialogues. Raises ValueError, a line a fault, where a number
    that is asked for cannot be had, or where the rules name what is not there.
    """
    faults = _unknown(dialogues, rules)
    faults += [
        f"dialogue {one.dialogue_id} has candidates; they are written after the selection"
        for one in dialogues
        if one.candidates
    ]
    reasons: dict[str, str] = {}
    chosen = _choose(dialogues, rules, reasons, faults)
    if faults:
        raise ValueError("\n".join(faults))
    taken = []
    decisions: list[Decision] = []
    for dialogue in dialogues:
        name = dialogue.dialogue_id
        if name in chosen:
            kept, said = _finish(*chosen[name], rules)
            taken.append((dialogue, kept))
            decisions += said
        else:
            why = {"reason": reasons.get(name, "not drawn"), "turns": len(dialogue.turns)}
            decisions.append(Decision(name, "left out", why))
    kept_ones = tuple(kept for _, kept in taken)
    return Selection(kept_ones, tuple(decisions), tuple(_warnings(taken, rules)))


def _choose(
    dialogues: Sequence[Dialogue], rules: Rules, reasons: dict[str, str], faults: list[str]
) -> dict[str, tuple[_Trimmed, int]]:
    """Return the dialogues that are drawn, each with its length; what cannot be had goes to `faults`."""
    groups: dict[tuple[str, str], list[Dialogue]] = defaultdict(list)
    for dialogue in dialogues:
        groups[dialogue.source, dialogue.domain].append(dialogue)
    chosen: dict[str, tuple[_Trimmed, int]] = {}
    earlier: dict[tuple[str, ...], str] = {}
    for (source, domain), members in groups.items():
        take = next((one for one in rules.take if one.fits(source, domain)), None)
        usable = _usable(members, take, rules.special, earlier, reasons)
        if take is None:
            continue
        order = [usable[n] for n in _order(rules.seed, source, domain, len(usable))]
        drawn, missing = _draw(order, take)
        faults += [
            _shortage(source, domain, take, length, number, len(members))
            for length, number in missing.items()
        ]
        chosen |= {trimmed.dialogue.dialogue_id: (trimmed, length) for trimmed, length in drawn}
    return chosen


def _unknown(dialogues: Sequence[Dialogue], rules: Rules) -> list[str]:
    """Return what the rules name and no dialogue has."""
    ids = {dialogue.dialogue_id for dialogue in dialogues}
    pairs = {(dialogue.source, dialogue.domain) for dialogue in dialogues}
    there = ", ".join(sorted(" / ".join(pair) for pair in pairs))
    faults = [
        f"there is no dialogue {name}, as the rules have it" for name in rules.special.keys() - ids
    ]
    for take in rules.take:
        wanted = take.domains or (None,)
        faults += [
            f"no dialogue has the source {take.source or 'any'} and the domain {domain or 'any'}, as the "
            f"rules have it; there are {there}"
            for domain in wanted
            if not any(take.fits(*pair) and domain in (None, pair[1]) for pair in pairs)
        ]
    by_id = {dialogue.dialogue_id: dialogue for dialogue in dialogues}
    for name, special in rules.special.items():
        turns = len(by_id[name].turns) if name in by_id else 0
        faults += [
            f"dialogue {name} has no turn {number} to edit; it has {turns}"
            for number in special.edit
            if turns and number > turns
        ]
    return sorted(faults)


def _order(seed: int, source: str, domain: str, size: int) -> list[int]:
    digest = hashlib.sha256(f"{source}\0{domain}".encode()).digest()
    draw = np.random.default_rng([seed, int.from_bytes(digest[:8])])
    return [int(n) for n in draw.permutation(size)]


def _usable(
    members: Iterable[Dialogue],
    take: Take | None,
    special: Mapping[str, Special],
    earlier: dict[tuple[str, ...], str],
    reasons: dict[str, str],
) -> list[_Trimmed]:
    """Return the dialogues that can be cut to one of the lengths; why the others cannot goes to `reasons`."""
    usable = []
    for dialogue in members:
        name = dialogue.dialogue_id
        trimmed = _trimmed(dialogue, take.start if take else "any")
        if name in special and special[name].leave_out:
            reasons[name] = special[name].leave_out
        elif take is None:
            reasons[name] = "no rule takes its source and domain"
        elif trimmed is None:
            reasons[name] = f"no {take.start} turn to start at"
        elif len(trimmed.turns) < min(take.lengths):
            reasons[name] = f"too short: {len(trimmed.turns)} turns, {min(take.lengths)} are needed"
        elif not _lengths(trimmed, take):
            reasons[name] = f"the last turn is no {take.last} turn at any of the lengths"
        else:
            first = tuple(" ".join(t.text.split()) for t in trimmed.turns[: min(take.lengths)])
            other = earlier.setdefault(first, name)
            if other == name:
                usable.append(trimmed)
            else:
                reasons[name] = f"its first {min(take.lengths)} turns are those of {other}"
    return usable


def _trimmed(dialogue: Dialogue, start: str) -> _Trimmed | None:
    """Return the dialogue from the first turn of the speaker `start` on; None where there is none."""
    speakers = [turn.speaker for turn in dialogue.turns]
    if start == "any":
        return _Trimmed(dialogue, 0, dialogue.turns)
    if start not in speakers:
        return None
    first = speakers.index(start)
    return _Trimmed(dialogue, first, dialogue.turns[first:])


def _lengths(trimmed: _Trimmed, take: Take) -> list[int]:
    """Return the lengths to which it can be cut."""
    return [
        length
        for length in take.lengths
        if len(trimmed.turns) >= length and take.last in ("any", trimmed.turns[length - 1].speaker)
    ]


def _draw(
    order: Sequence[_Trimmed], take: Take
) -> tuple[list[tuple[_Trimmed, int]], Mapping[int, int]]:
    """Return dialogues with the length of each, and how many of which length are missing.

    A dialogue that was drawn for one length is moved to another where that lets more be drawn, so that
    nothing is missing that could be had.
    """
    possible = [set(_lengths(trimmed, take)) for trimmed in order]
    drawn: dict[int, int] = {}
    missing: Counter[int] = Counter()
    if take.dialogues is None:
        whole: dict[int, int] = {}
        while all(_place(length, possible, drawn, set()) for length in take.lengths):
            whole = dict(drawn)
        drawn = whole
    else:
        share, over = divmod(take.dialogues, len(take.lengths))
        for place, length in enumerate(take.lengths):
            for _ in range(share + (place < over)):
                missing[length] += not _place(length, possible, drawn, set())
    return [(order[n], length) for n, length in sorted(drawn.items())], +missing


def _place(
    length: int, possible: Sequence[set[int]], drawn: dict[int, int], tried: set[int]
) -> bool:
    """Draw one more dialogue for a length, if need be one that another length can replace."""
    tried.add(length)
    for n, lengths in enumerate(possible):
        if n not in drawn and length in lengths:
            drawn[n] = length
            return True
    for n, other in list(drawn.items()):
        if other not in tried and length in possible[n] and _place(other, possible, drawn, tried):
            drawn[n] = length
            return True
    return False


def _shortage(source: str, domain: str, take: Take, length: int, missing: int, members: int) -> str:
    conditions = [f"start with a {take.start} turn"] if take.start != "any" else []
    conditions += [f"end with a {take.last} turn"] if take.last != "any" else []
    which = f" that {' and '.join(conditions)}" if conditions else ""
    return (
        f"{source or 'no source'} / {domain or 'no domain'}: {missing} of the dialogues of {length} "
        f"turns{which} are missing; {take.dialogues} are asked for, there are {members} to draw from"
    )


def _finish(trimmed: _Trimmed, length: int, rules: Rules) -> tuple[Dialogue, list[Decision]]:
    """Cut, edit and label a dialogue; return it with what was decided about it."""
    dialogue = trimmed.dialogue
    name = dialogue.dialogue_id
    special = rules.special.get(name, Special())
    of = {"source": dialogue.source, "domain": dialogue.domain, "n_turns": length}
    said = [Decision(name, "kept", of)]
    if trimmed.dropped:
        said.append(Decision(name, "start dropped", {"turns": trimmed.dropped}))
    if rest := len(trimmed.turns) - length:
        said.append(Decision(name, "cut", {"to": length, "turns_dropped": rest}))
    turns = list(trimmed.turns[:length])
    for number, text in sorted(special.edit.items()):
        place = number - 1 - trimmed.dropped
        if 0 <= place < length:
            told = {"turn": number, "from": turns[place].text, "to": text}
            turns[place] = replace(turns[place], text=text)
            said.append(Decision(name, "edited", told))
        else:
            said.append(Decision(name, "edit not needed", {"turn": number, "why": "not kept"}))
    original = dialogue.original_domain or dialogue.domain
    domain = special.domain or rules.relabel.get(dialogue.domain, dialogue.domain)
    if domain != dialogue.domain:
        by = "dialogue" if special.domain else "table"
        said.append(Decision(name, "relabelled", {"from": dialogue.domain, "to": domain, "by": by}))
    kept = replace(
        dialogue,
        turns=tuple(turns),
        domain=domain,
        original_domain=original if rules.relabels else dialogue.original_domain,
    )
    return kept, said


def _warnings(taken: Sequence[tuple[Dialogue, Dialogue]], rules: Rules) -> Iterator[str]:
    """Yield what is odd about the labels of dialogues before and after they were labelled."""
    if not rules.relabels:
        return
    labels = set(rules.relabel.values()) | {one.domain for one in rules.special.values()}
    left = Counter(after.domain for _, after in taken if after.domain not in labels)
    for domain, times in sorted(left.items()):
        yield f"{times} dialogues keep the domain {domain!r}; the rules have no label for it"
    for name in sorted(rules.relabel.keys() - {before.domain for before, _ in taken}):
        yield f"relabel: no dialogue that was taken has the domain {name!r}"
