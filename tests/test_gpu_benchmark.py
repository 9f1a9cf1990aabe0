"""The benchmark of GPUs: its code runs on a CPU, and on a card, at a tiny size."""

import re

import pytest

PROGRAMS = (
    "giccs, with the check of the forward pass", "giccs, repeated", "giccs",
    "sentence-transformers, batch size 32", "giccs csts train, float32",
)  # fmt: skip


@pytest.fixture
def gpu():
    pytest.importorskip("torch")
    pytest.importorskip("sentence_transformers")
    from benchmarks import gpu

    return gpu


def measured(output):
    """Return program -> (seconds, tokens per second, share of the peak in percent)."""
    lines = re.findall(r"^(.+?)\s+([\d.]+) s\s+([\d,]+) tokens/s\s+([\d.]+)%", output, re.MULTILINE)
    return {name: [float(cell.replace(",", "")) for cell in cells] for name, *cells in lines}


def test_every_part_runs_on_a_cpu(gpu, capsys):
    from giccs.csts.encoders.training import cpu_has_bf16

    gpu.main(["--device", "cpu", "--size", "tiny", "--dtype", "float32", "--peer", ""])
    output = capsys.readouterr().out
    numbers = measured(output)
    bf16 = {"giccs csts train, mixed precision bf16"} if cpu_has_bf16() else set()
    assert set(numbers) == {*PROGRAMS, *bf16}
    assert ("this CPU does not support it" in output) == (not bf16)
    assert all(seconds > 0 and rate > 0 for seconds, rate, _ in numbers.values())
    shape = gpu.SHAPES["tiny"]
    seconds, rate, _ = numbers["giccs, repeated"]
    assert seconds * rate == pytest.approx(shape.questions * (180 + 5 * 15), rel=0.02)
    assert "lm-evaluation-harness: not measured" in output
    assert "token tree" in output


def test_the_arithmetic_is_that_of_the_layers(gpu):
    """One layer 8 wide: QKV and output 4 · 8², MLP 8 · 8², two operations each; attention 4 · 8 per pair."""
    assert gpu.transformer_flops(1, 8, tokens=10, squares=100) == 2 * 12 * 64 * 10 + 4 * 8 * 100


def test_without_a_card_nothing_is_measured(gpu, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit, match="no CUDA device; use --device cpu --size tiny"):
        gpu.main([])


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_every_part_runs_on_a_card(gpu, capsys, dtype):
    gpu.main(["--device", "cuda", "--size", "tiny", "--dtype", dtype, "--peer", ""])
    assert set(PROGRAMS) < set(measured(capsys.readouterr().out))
