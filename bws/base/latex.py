"""LaTeX of tables for papers: escaped text and booktabs, for pdflatex without further packages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

SPECIAL = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": "$<$", ">": "$>$", "|": "$|$", '"': "''",
    "\u00a0": "~", "\u202f": r"\,", "\u2060": "{}", "\u00ad": r"\-", "–": "--", "—": "---", "…": r"\dots{}",
    "\u2018": "`", "\u2019": "'", "\u201c": "``", "\u201d": "''", "\u201a": ",", "\u201e": ",,",
    "«": r"$\ll$", "»": r"$\gg$", "‹": r"$\langle$", "›": r"$\rangle$",
    "±": r"$\pm$", "×": r"$\times$", "÷": r"$\div$", "·": r"$\cdot$", "\u2212": "$-$", "¬": r"$\neg$",
    "≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$", "≈": r"$\approx$", "→": r"$\to$", "∞": r"$\infty$",
    "°": r"$^\circ$", "²": "$^2$", "³": "$^3$", "¹": "$^1$", "†": r"$^\dagger$", "‡": r"$^\ddagger$",
    "§": r"\S{}", "©": r"\copyright{}", "√": r"$\surd$", "µ": r"$\mu$",
    "Δ": r"$\Delta$", "Σ": r"$\Sigma$", "Ω": r"$\Omega$",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "δ": r"$\delta$", "ε": r"$\varepsilon$",
    "ζ": r"$\zeta$", "η": r"$\eta$", "θ": r"$\theta$", "ι": r"$\iota$", "κ": r"$\kappa$",
    "λ": r"$\lambda$", "μ": r"$\mu$", "ν": r"$\nu$", "ξ": r"$\xi$", "π": r"$\pi$", "ρ": r"$\rho$",
    "σ": r"$\sigma$", "τ": r"$\tau$", "υ": r"$\upsilon$", "φ": r"$\varphi$", "χ": r"$\chi$",
    "ψ": r"$\psi$", "ω": r"$\omega$",
}  # fmt: skip
TEXT_LETTERS = frozenset("ßæÆøØœŒłŁı¡¿")
ACCENTS = frozenset("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327")
"""Combining characters of the accents that pdflatex composes in its default encoding."""
MINUS = re.compile(r"(?<![^\s\[(,])-(?=\.?\d)")
TEXT_POINTS = 483.0 - 10
"""Width of a text of 17 cm in points, less what widths of letters are uncertain."""
MIN_TEXT_POINTS = 120.0
"""Smallest width of a column of texts with broken lines."""
COLUMN_POINTS = 12.0
"""Space between two columns in points."""
SIZES = {
    "": (1.0, COLUMN_POINTS),
    r"\small": (0.92, COLUMN_POINTS),
    r"\footnotesize": (0.85, COLUMN_POINTS),
    r"\scriptsize": (0.79, COLUMN_POINTS),
    r"\scriptsize\setlength{\tabcolsep}{3pt}": (0.79, 6.0),
}
"""Commands -> width of their letters relative to 10 pt, and space between two columns in points."""
NARROW = frozenset("iljtfrI.,:;|!'[]() -/")
"""Characters of about 2.8 points."""
WIDE = frozenset("mw%+=")
"""Characters of about 7.6 points, as capitals and symbols in math mode."""
SYMBOL = re.compile(r"\$[^$]+\$")
LINE_STARTS = (re.compile(r" (?=\[[^\]]*\]$)"), re.compile(r" (?=\[[^\]]*\]$|\$\\pm\$ \d)"))
"""Where a cell has a second line: before an interval, then also before an error."""
TITLE_BREAK = re.compile(r"(?= )|(?<=\w[-/:])(?=\w)")
"""Before spaces, and after punctuation in names."""
COMMAND = re.compile(r"\\[a-z]+\b|[${}\\^]")
MARKUP = re.compile(r"[${}]|\\(textbf|underline)\b")
CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
LIGATURE = re.compile(r"-(?=-)")
NUMBER = re.compile(r"[+\-\u2212<]?\d[\d.,]*[*%]?([ ].*)?")
BLANKS = ("", "–", "undefined", "nan")
"""Cells that occur in columns of numbers."""


def latex_text(text: str) -> str:
    r"""Return a text for LaTeX, with special characters escaped and symbols in math mode.

    Letters of scripts that pdflatex cannot typeset are unchanged; `tabular` lists them.

    >>> print(latex_text("my_model † 50 % ρ = -0.5 ± 0.1"))
    my\_model$^\dagger$ 50 \% $\rho$ = $-$0.5 $\pm$ 0.1
    """
    line = unicodedata.normalize("NFC", CONTROL.sub(" ", text.replace(" †", "†")))
    line = LIGATURE.sub("-\u2060", MINUS.sub("\u2212", line))
    return "".join(SPECIAL.get(character, character) for character in line)


def comment(lines: Sequence[str]) -> list[str]:
    """Return lines as LaTeX comments.

    >>> comment(["one note"])
    ['% one note']
    """
    return [f"% {each}" for line in lines for each in line.splitlines() or [""]]


def tabular(
    rows: Sequence[Sequence[str]],
    headers: Sequence[str],
    groups: Sequence[str] = (),
    align: Sequence[str] | None = None,
) -> str:
    r"""Return a tabular of booktabs; cells and headers are LaTeX already, such as from `latex_text`.

    groups: the title shared by adjacent columns, for each column. align: ``right`` or ``decimal`` for
    columns of numbers; columns with numbers only are always on the right. Characters that pdflatex cannot
    typeset are listed in a comment above.

    >>> print(tabular([["a", "0.5"]], ["item", "score"]))
    \begin{tabular}{lr}
    \toprule
    item & score \\
    \midrule
    a & 0.5 \\
    \bottomrule
    \end{tabular}
    """
    alignment = "".join(_alignments(rows, headers, align))
    body = [_row(row) for row in rows]
    head = [*_group_lines(groups, headers), *([_row(headers)] if headers else [])]
    lines = [
        f"\\begin{{tabular}}{{{alignment}}}",
        "\\toprule",
        *([*head, "\\midrule"] if head else []),
        *body,
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join([*_unsupported("".join(lines)), *lines])


def fitted_tabular(
    rows: Sequence[Sequence[str]],
    headers: Sequence[str],
    groups: Sequence[str] = (),
    align: Sequence[str] | None = None,
) -> str:
    r"""Return `tabular` for a text of `TEXT_POINTS` in 10 pt.

    If it is wider, intervals are below their values and headers have several lines. If that is not enough,
    lines of the widest column of texts are broken; without such a column, the font is smaller, down to
    ``\scriptsize``, then the columns are closer, and if the table is wider still, a comment says so.
    """
    sides = _alignments(rows, headers, align)
    if _points_of_table(rows, headers) <= TEXT_POINTS:
        return tabular(rows, headers, groups, align)
    for line_start in LINE_STARTS:
        cells = [[line_start.sub("\n", cell) for cell in row] for row in rows]
        titles = [
            _broken(title, max((_lines_width(row[n]) for row in cells), default=0.0))
            for n, title in enumerate(headers)
        ]
        if _points_of_table(cells, titles) <= TEXT_POINTS:
            break
    text_column, room = _text_column(cells, titles, sides)
    if text_column is not None:
        sides[text_column] = f"p{{{room:.0f}pt}}"
        return _stacked_tabular(cells, titles, groups, sides)
    widths = {size: _points_of_table(cells, titles, *sizes) for size, sizes in SIZES.items()}
    size = next((each for each, width in widths.items() if width <= TEXT_POINTS), [*SIZES][-1])
    text = _stacked_tabular(cells, titles, groups, sides)
    if size:
        text = f"{{{size}\n{text}}}"
    if widths[size] > TEXT_POINTS:
        text = "\n".join(
            [*comment(["wider than 17 cm: select columns, or rotate the table"]), text]
        )
    return text


def _stacked_tabular(
    cells: Sequence[Sequence[str]],
    titles: Sequence[str],
    groups: Sequence[str],
    sides: Sequence[str],
) -> str:
    """Return a tabular whose cells and headers may have several lines; sides: as of `_alignments`."""
    inner = ["r" if side == "r" else "l" for side in sides]
    rows = [[_stacked(cell, side) for cell, side in zip(row, inner, strict=True)] for row in cells]
    headers = [_stacked(title, side) for title, side in zip(titles, inner, strict=True)]
    return tabular(rows, headers, groups, ["right" if side == "r" else side for side in sides])


def _text_column(
    cells: Sequence[Sequence[str]], titles: Sequence[str], sides: Sequence[str]
) -> tuple[int | None, float]:
    """Return the widest column of texts if breaking its lines makes the table fit, and the room for it."""
    total = _points_of_table(cells, titles)
    widths = {
        n: max(_lines_width(row[n]) for row in cells)
        for n, side in enumerate(sides)
        if side == "l" and cells
    }
    if total <= TEXT_POINTS or not widths:
        return None, 0.0
    column = max(widths, key=widths.__getitem__)
    room = TEXT_POINTS - (total - widths[column])
    has_words = any(" " in row[column] for row in cells)
    return (column, room) if has_words and room >= MIN_TEXT_POINTS else (None, 0.0)


def _points_of_table(
    rows: Sequence[Sequence[str]],
    headers: Sequence[str],
    factor: float = 1.0,
    space: float = COLUMN_POINTS,
) -> float:
    """Return the approximate width of a table in points; factor, space: as in `SIZES`."""
    columns = zip(headers, *rows, strict=True)
    return sum(factor * max(map(_lines_width, column)) + space for column in columns)


def _lines_width(cell: str) -> float:
    return max(map(_points, cell.split("\n")))


def _points(text: str) -> float:
    """Return the approximate width of a text in LaTeX in points, for 10 pt Computer Modern."""
    with_symbols = SYMBOL.sub("M", text.replace("\\_", "_").replace("\\%", "%"))
    plain = COMMAND.sub("", with_symbols)
    bold = 1.15 if "textbf" in text else 1.0
    return bold * sum(
        2.8 if c in NARROW else 7.6 if c.isupper() or c in WIDE else 5.2 for c in plain
    )


def _broken(title: str, width: float) -> str:
    """Return a header with line breaks at spaces and in names, so that no line is wider if possible."""
    return "\n".join(filled_lines(TITLE_BREAK.split(title), width, _points))


def filled_lines(
    pieces: Iterable[str], width: float, width_of: Callable[[str], float] = len
) -> list[str]:
    """Return the pieces in lines that are no wider than `width`, unless a piece is.

    pieces: with the spaces before them, which are removed at the start of a line.

    >>> filled_lines(["a", " bc", " d-", "e"], 4)
    ['a bc', 'd-e']
    """
    lines: list[str] = []
    for piece in pieces:
        if lines and width_of(f"{lines[-1]}{piece}") <= width:
            lines[-1] += piece
        else:
            lines.append(piece.lstrip(" "))
    return lines


def _stacked(cell: str, side: str) -> str:
    lines = cell.split("\n")
    if len(lines) == 1:
        return cell
    content = r" \\ ".join("{}" + line if line.startswith("[") else line for line in lines)
    return f"\\begin{{tabular}}[t]{{@{{}}{side}@{{}}}}{content}\\end{{tabular}}"


def table_environment(tabular_text: str, caption: str = "", label: str = "") -> str:
    r"""Return a tabular in a ``table`` with caption and label, or alone without both.

    >>> print(table_environment("…", "50 % of all", "tab:half"))
    \begin{table}
    \centering
    \caption{50 \% of all}
    \label{tab:half}
    …
    \end{table}
    """
    if not caption and not label:
        return tabular_text
    lines = ["\\begin{table}", "\\centering"]
    lines += [f"\\caption{{{latex_text(caption)}}}"] if caption else []
    lines += [f"\\label{{{label}}}"] if label else []
    return "\n".join([*_unsupported(caption), *lines, tabular_text, "\\end{table}"])


def long_table(tabular_text: str, caption: str = "", label: str = "") -> str:
    r"""Return a tabular as a ``longtable``, which pages may break, with its header on each page.

    >>> print(long_table(tabular([["a", "0.5"]], ["item", "score"]), "Scores", "tab:scores"))
    % requires \usepackage{longtable}
    \begin{longtable}{lr}
    \caption{Scores}\label{tab:scores} \\
    \toprule
    item & score \\
    \midrule
    \endfirsthead
    \toprule
    item & score \\
    \midrule
    \endhead
    \bottomrule
    \endfoot
    a & 0.5 \\
    \end{longtable}
    """
    lines = tabular_text.split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith("\\begin{tabular}{"))
    body = lines.index("\\midrule", start) + 1
    end = lines.index("\\bottomrule", body)
    head = lines[start + 1 : body]
    title = [f"\\caption{{{latex_text(caption)}}}"] if caption else []
    title += [f"\\label{{{label}}}"] if label else []
    return "\n".join(
        [
            *comment(["requires \\usepackage{longtable}"]),
            *_unsupported(caption),
            *lines[:start],
            lines[start].replace("{tabular}", "{longtable}", 1),
            *(["".join(title) + r" \\"] if title else []),
            *(*head, "\\endfirsthead", *head, "\\endhead", "\\bottomrule", "\\endfoot"),
            *lines[body:end],
            "\\end{longtable}",
            *lines[end + 2 :],
        ]
    )


def _alignments(
    rows: Sequence[Sequence[str]], headers: Sequence[str], align: Sequence[str] | None
) -> list[str]:
    """Return ``r``, ``l`` or, if `align` has it, ``p{WIDTH}`` for each column."""
    stated = align or [""] * len(headers)
    return [_side(side, [row[n] for row in rows]) for n, side in enumerate(stated)]


def _side(stated: str, cells: Sequence[str]) -> str:
    if stated in ("right", "decimal"):
        return "r"
    return stated if stated.startswith("p{") else _alignment(cells)


def _alignment(cells: Sequence[str]) -> str:
    texts = [MARKUP.sub("", cell.replace(r"\%", "%")) for cell in cells]
    numbers = [text for text in texts if text.replace("--", "–") not in BLANKS]
    return "r" if numbers and all(map(NUMBER.fullmatch, numbers)) else "l"


def _row(cells: Sequence[str]) -> str:
    r"""Return a line; a bracket or star at its start is no argument of the ``\\`` before it."""
    line = " & ".join(cells)
    return ("{}" if line.startswith(("[", "*")) else "") + line + " \\\\"


def _group_lines(groups: Sequence[str], headers: Sequence[str]) -> Iterator[str]:
    """Yield the line of titles shared by several columns, and the rules below them."""
    cells, rules, start = [], [], 1
    for title, columns in groupby(groups):
        width = len(list(columns))
        if title and width > 1:
            cells.append(f"\\multicolumn{{{width}}}{{c}}{{{title}}}")
            rules.append(f"\\cmidrule(lr){{{start}-{start + width - 1}}}")
        else:
            cells += [""] * width
        start += width
    if rules:
        yield _row(cells)
        yield " ".join(rules)


def _unsupported(text: str) -> list[str]:
    """Return a comment about characters that pdflatex cannot typeset, or nothing."""
    characters = sorted({char for char in text if not _is_typeset(char)})
    hint = "typeset with LuaLaTeX or XeLaTeX and a font that has"
    return comment([f"{hint}: {' '.join(characters)}"]) if characters else []


def _is_typeset(character: str) -> bool:
    if character.isascii() or character in TEXT_LETTERS or character in SPECIAL:
        return True
    letter, *accents = list(unicodedata.normalize("NFD", character))
    return character < "\u0180" and letter.isascii() and ACCENTS.issuperset(accents)
