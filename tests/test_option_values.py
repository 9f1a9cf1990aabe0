"""No numeric option takes a value with which a command fails inside a library, or runs for ever."""

import math

import click
import pytest
from click.testing import CliRunner

from bws.base.options import MAX_COUNT, SEED, Number
from giccs_app.cli import main

HUGE = str(10**20)
DIGITS = "9" * 5000
"""More digits than Python turns into a number."""


def commands(name, command):
    """Yield (words of the call, command) of a command and of those below it."""
    yield name, command
    context = click.Context(command, info_name=name[-1])
    if hasattr(command, "list_commands"):
        for below in command.list_commands(context):
            subcommand = command.get_command(context, below)
            if subcommand.name == " ".join((*name, below)):  # not an equal name
                yield from commands((*name, below), subcommand)


def all_commands():
    yield from commands(("giccs",), main)


def types_of(option):
    return option.type.types if isinstance(option.type, click.Tuple) else [option.type]


def is_numeric(option):
    numeric = (click.types.IntParamType, click.types.FloatParamType)
    return any(isinstance(kind, numeric) for kind in types_of(option))


NUMERIC = [
    (words, option)
    for words, command in all_commands()
    for option in command.params
    if isinstance(option, click.Option) and is_numeric(option)
]
TEXTS = [
    (words, option)
    for words, command in all_commands()
    for option in ("--batch-size", "--device", "--curve", "--k")
    if any(
        option in param.opts and isinstance(param.type, click.types.StringParamType)
        for param in command.params
    )
]
"""Options whose numbers are part of a text."""


def refusal(words, option, *values):
    """Return what a call says; nothing but the one option is given."""
    result = CliRunner().invoke(main, [*words[1:], option, *values])
    call = (*words, option, *(value[:20] for value in values))
    assert result.exit_code == 2, (call, result.output, result.exception)
    assert f"Invalid value for '{option}'" in result.stderr, call
    assert "Traceback" not in result.output, call
    return result.stderr


def test_there_are_options_to_look_at():
    assert len(NUMERIC) > 50
    assert len(TEXTS) == 8


def ends_missing(option):
    for kind in types_of(option):
        if not isinstance(kind, click.IntRange | Number):
            yield f"{kind} has no range"
        elif not -math.inf < kind.min < kind.max < math.inf:
            yield f"{kind} has an open end"
        elif isinstance(kind, click.IntRange) and kind is not SEED and kind.max > MAX_COUNT:
            yield f"{kind} ends above {MAX_COUNT}"
    if option.opts[0] == "--seed" and option.type is not SEED:
        yield "the type is not SEED"


def test_every_numeric_option_has_two_ends():
    missing = [
        f"{' '.join(words)} {option.opts[0]}: {problem}"
        for words, option in NUMERIC
        for problem in ends_missing(option)
    ]
    assert missing == []
    for kind, count in ((click.INT, 1), (click.IntRange(0, 10**18), 1), (click.FloatRange(0), 1)):
        assert len([*ends_missing(click.Option(["--n"], type=kind))]) == count


WRONG_NUMBERS = ("nan", "inf", "-inf", HUGE, f"-{HUGE}", "1e400", DIGITS, "many")


def test_every_numeric_option_refuses_what_is_no_number_in_its_range():
    """Of each option by its type; one of each command by calls below."""
    accepted = []
    for words, option in NUMERIC:
        context = click.Context(click.Command(words[-1]))
        for value in WRONG_NUMBERS:
            values = [value] * len(types_of(option))
            try:
                option.type_cast_value(context, values if len(values) > 1 else value)
            except click.BadParameter:
                continue
            accepted.append(f"{' '.join(words)} {option.opts[0]} {value[:20]}")
    assert accepted == []


def test_a_call_refuses_what_is_no_number_in_its_range():
    calls = {words[1]: (words, option) for words, option in NUMERIC}
    assert len(calls) >= 10
    for words, option in calls.values():
        for value in WRONG_NUMBERS:
            refusal(words, option.opts[0], *[value] * len(types_of(option)))


def test_numbers_in_texts_are_bounded():
    for words, option in TEXTS:
        for value in ("nan", "inf", "-1", "0", HUGE, DIGITS, "gpu", "cuda:-1", f"cuda:{HUGE}"):
            refusal(words, option, value)


@pytest.mark.parametrize(
    ("words", "option", "value"),
    [
        (("giccs", "csts", "train"), "--learning-rate", "inf"),
        (("giccs", "csts", "train"), "--learning-rate", "0"),
        (("giccs", "csts", "train"), "--weight-decay", "-0.1"),
        (("giccs", "csts", "train"), "--warmup", "1"),
        (("giccs", "csts", "train"), "--curve", f"8,{HUGE}"),
        (("giccs", "design"), "--factor", "inf"),
        (("giccs", "design"), "--tuples", HUGE),
        (("giccs", "design"), "--seed", "-1"),
        (("giccs", "eval"), "--seed", str(2**32)),
        (("giccs", "eval"), "--device", "gpu"),
        (("giccs", "score"), "--prior", "0"),
        (("giccs", "simulate"), "--position-bias", "inf"),
        (("giccs", "annotate", "invite"), "--days", HUGE),
    ],
)
def test_single_values(words, option, value):
    assert value in refusal(words, option, value)


@pytest.mark.parametrize("more", [["--factor", "1000"], ["--tuples", "999999999"]])
def test_a_design_that_is_too_large_is_refused_at_once(tmp_path, more):
    from bws.cli import make_tuples

    items = tmp_path / "items.txt"
    items.write_text("".join(f"item {n}\n" for n in range(20_000)))
    result = CliRunner().invoke(make_tuples, [str(items), "-k", "4", *more])
    assert result.exit_code == 2
    assert (
        "tuples is too large; at most 10000000 are supported (--tuples, --factor)" in result.stderr
    )


def test_a_design_that_is_too_large_for_an_extension(tmp_path):
    from bws.design import extend_tuples, make_tuples

    old = make_tuples(["a", "b", "c", "d", "e"], 3, count=5)
    for factor in (1e9, 1e308):
        with pytest.raises(ValueError, match="is too large; at most 10000000"):
            extend_tuples(old, ["f", "g"], factor=factor, allow_repeats=True)
        with pytest.raises(ValueError, match="is too large; at most 10000000"):
            make_tuples(["a", "b", "c"], 2, factor=factor, allow_repeats=True)


def toml(tmp_path, text):
    path = tmp_path / "file.toml"
    path.write_text(text)
    return path


LONG = "9" * 5000


def test_values_of_a_recipe(tmp_path):
    from bws.base.problems import InputError
    from giccs.evaluation.recipe import read_recipe

    def refused(ask, task="csts-train", value="0.5"):
        path = toml(
            tmp_path,
            'data = "csts-sample"\n[[model]]\nname = "package:minilm"\n'
            f'task = "{task}"\nask = {{ {ask} }}\n'
            f'published = [{{ metric = "spearman", value = {value} }}]\n',
        )
        with pytest.raises(InputError) as caught:
            read_recipe(path)
        return str(caught.value)

    assert "learning_rate is inf; expected a number above 0 and up to 1" in refused(
        "learning_rate = inf"
    )
    assert "learning_rate is nan; expected a number above 0 and up to 1" in refused(
        "learning_rate = nan"
    )
    assert "weight_decay is nan; expected a number from 0 to 10" in refused("weight_decay = nan")
    assert "margin is inf" in refused("objective = 'quad', margin = inf")
    assert f"epochs is {HUGE}" in refused(f"epochs = {HUGE}")
    assert "seed is 4294967296; expected an integer from 0 to 4294967295" in refused(
        "seed = 4294967296", "csts"
    )
    assert f"shots is {HUGE}; expected an integer from 0 to 1000" in refused(
        f"shots = {HUGE}", "csts-prompt"
    )
    for value in ("nan", "inf", f"1{'0' * 400}"):
        assert "expected a number" in refused("encoding = 'bi'", value=value)
    assert "not valid TOML: " in refused(f"epochs = {LONG}")


def test_values_of_sweeps(tmp_path):
    from bws.base.problems import InputError
    from giccs.csts.encoders.settings import Settings
    from giccs.csts.encoders.sweep import points, read_grid
    from giccs.evaluation.sweep import read_sweep

    start = '[[grid]]\nmodels = ["package:minilm"]\ntasks = ["csts"]\noptions = '
    with pytest.raises(
        InputError, match="seed is 4294967296; expected an integer from 0 to 4294967295"
    ):
        read_sweep(toml(tmp_path, start + "{ seed = [1, 4294967296] }\n"))
    for values, message in (
        (
            "learning_rate = [1e-5, inf]",
            "learning_rate is inf; expected a number above 0 and up to 1",
        ),
        ("weight_decay = [nan]", "weight_decay is nan; expected a number from 0 to 10"),
        (f"batch = [{HUGE}]", f"batch is {HUGE}; expected an integer from 1 to 1000000"),
        ('epochs = ["many"]', "grid: epochs is 'many'; expected an integer from 1 to 10000"),
    ):
        with pytest.raises(InputError, match=message):
            points(read_grid(toml(tmp_path, f"[grid]\n{values}\n")), Settings("package:minilm"))
    for seeds in ("-1", HUGE, "1.5", "inf"):
        with pytest.raises(InputError, match="distinct integers from 0 to 4294967295"):
            read_grid(toml(tmp_path, f"[grid]\nepochs = [1]\n[final]\nseeds = [{seeds}]\n"))


def test_values_of_a_study_and_of_a_selection(tmp_path):
    from bws.base.problems import InputError
    from giccs.preparation.selection.rules import read_rules
    from mturk.study.settings_file import read_settings

    for key, value in (
        ("exchange_rate", '"inf"'), ("exchange_rate", '"1e999999"'), ("minimum_wage", '"nan"'),
        ("reward", '"inf"'), ("spending_limit", '"-1.00"'), ("seed", "-1"), ("seed", HUGE),
        ("assignments", "inf"), ("expected_seconds", "0"), ("lifetime", HUGE),
        ("approval_rate_above", "nan"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=rf"file\.toml:1: {key} is "):
            read_settings(toml(tmp_path, f"{key} = {value}\n"))
    for text in (
        "seed = -1",
        f"seed = {HUGE}",
        "seed = inf",
        "dialogues = 0",
        f"dialogues = {HUGE}",
    ):
        with pytest.raises(InputError, match=r"expected (an integer|[01] or more|\d+ or less)"):
            read_rules(toml(tmp_path, f"{text}\n"))
    for read in (read_rules, read_settings):
        with pytest.raises(InputError, match="not valid TOML"):
            read(toml(tmp_path, f"seed = {LONG}\n"))
