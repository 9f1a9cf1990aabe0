"""The benchmark of GPUs: its code runs on a CPU, and on a card, at a tiny size."""

import json

import pytest

CHOICES = {"giccs, with its checks", "giccs, again"}
RANKS = {"giccs", "giccs, again", "giccs, host"}
ENCODERS = {"giccs", "giccs, again", "sentence-transformers", "sentence-transformers, best"}


@pytest.fixture
def gpu():
    pytest.importorskip("torch")
    pytest.importorskip("sentence_transformers")
    from benchmarks import gpu

    return gpu


def measured(gpu, path, *arguments):
    """Return part -> {program -> row} of a run of the benchmark, and its remarks."""
    gpu.main(["--size", "tiny", "--peer", "", "--output", str(path), *arguments])
    parts, remarks = {}, []
    for row in map(json.loads, path.read_text().splitlines()):
        if "remark" in row:
            remarks.append(row["remark"])
        else:
            parts.setdefault(row["part"], {})[row["program"]] = row
    return parts, "\n".join(remarks)


def check(parts):
    """Check that every part has all its programs; return those of the training."""
    (trained,) = (set(programs) for part, programs in parts.items() if part.startswith("training"))
    for part, programs in parts.items():
        if not part.startswith("training"):
            expected = {"encoder": ENCODERS, "EvalRank": RANKS}.get(part.partition(",")[0], CHOICES)
            assert set(programs) == expected, part
    rows = [row for programs in parts.values() for row in programs.values()]
    assert all(row["seconds"] > 0 and row["share"] > 0 for row in rows)
    return trained


def test_every_part_runs_on_a_cpu(gpu, tmp_path):
    from giccs.csts.encoders.training import cpu_has_bf16

    arguments = ("--device", "cpu", "--dtype", "float32")
    parts, remarks = measured(gpu, tmp_path / "run.jsonl", *arguments)
    bf16 = {"giccs csts train, mixed precision bf16"} if cpu_has_bf16() else set()
    assert check(parts) == {"giccs csts train, float32", *bf16}
    assert ("this CPU does not support it" in remarks) == (not bf16)
    assert remarks.count("lm-evaluation-harness: not measured") == 6
    assert "different ranks: 0" in remarks
    equal = parts["multiple choice, tiny GPT-2, 3 prompts, one length"]["giccs, again"]
    assert equal["tokens"] == pytest.approx(3 * (180 + 5 * 15), rel=0.02)
    long = parts["multiple choice, tiny Llama, 3 prompts, many lengths"]["giccs, with its checks"]
    assert 3 * 248 < long["tokens"] < 3 * (1088 + 5 * 16)
    assert long["forward"] == "token tree"


def test_nothing_begins_after_the_time(gpu, tmp_path):
    parts, remarks = measured(gpu, tmp_path / "run.jsonl", "--device", "cpu", "--minutes", "0")
    assert not parts
    assert remarks.count("not measured, the time is over") == 10


def test_the_arithmetic_is_that_of_the_layers(gpu):
    """One layer 8 wide: QKV and output 4 · 8², MLP 8 · 8², two operations each; attention 4 · 8 per pair."""
    found = gpu.transformer_flops(12 * 64, layers=1, width=8, tokens=10, squares=100)
    assert found == 2 * 12 * 64 * 10 + 4 * 8 * 100


def test_the_parameters_of_the_layers(gpu, tmp_path):
    """GPT-2: 12 matrices of width², their biases 13 · width, and two norms a layer, one at the end."""
    shape = gpu.Shape("two layers", 2, 8, 2)
    parameters = gpu.make_causal(str(tmp_path), shape, ["w0", "w1"], "cpu", "float32")
    assert parameters == 2 * (12 * 64 + 13 * 8) + 2 * 8


def test_other_choices_are_counted(gpu):
    questions = [("a", [" b", " c"]), ("d", [" e", " f", " g"])]
    assert gpu.differing_choices([-1, -2, -3, -2, -1], [-1, -2, -1, -2, -3], questions) == 1


def test_without_a_card_nothing_is_measured(gpu, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit, match="no CUDA device; use --device cpu --size tiny"):
        gpu.main([])


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_every_part_runs_on_a_card(gpu, tmp_path, dtype):
    parts, _ = measured(gpu, tmp_path / "run.jsonl", "--device", "cuda", "--dtype", dtype)
    assert "giccs csts train, float32" in check(parts)
