"""The objectives: by hand, and their gradients against finite differences."""

import pytest

from ..deferred import Deferred, requires

pytestmark = requires("torch")
torch = Deferred("torch")
losses = Deferred("giccs.csts.encoders.losses")

LABELS = [5, 1, 4, 2, 3]
PAIRS = [[0, 1], [2, 3]]  # the fifth row is alone
NAMES = ["mse", "quad", "quad+mse"]


@pytest.fixture
def vectors():
    """(10, 4) vectors in float64: five first texts, then five second ones."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(10, 4, generator=generator, dtype=torch.float64).requires_grad_()


def loss_of(name, vectors, margin=1.0):
    first, second = vectors.chunk(2)
    scores = torch.nn.functional.cosine_similarity(first, second, dim=-1)
    return losses.objective(name, scores, torch.tensor(LABELS), torch.tensor(PAIRS), margin)


def test_labels_from_1_to_5_become_0_to_1():
    assert losses.rescaled(torch.tensor([1, 2, 3, 4, 5])).tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_squared_error_by_hand():
    # (0.5 - 1)^2 = 0.25, (0.5 - 0)^2 = 0.25, (0.75 - 0.75)^2 = 0
    assert losses.mse(
        torch.tensor([0.5, 0.5, 0.75]), torch.tensor([5, 1, 4])
    ).item() == pytest.approx(0.5 / 3)


def test_quadruplet_loss_by_hand():
    p1, p2 = torch.tensor([1.0, 0.0]), torch.tensor([3.0, 4.0])  # cos = 3 / 5
    n1, n2 = torch.tensor([0.0, 2.0]), torch.tensor([4.0, 3.0])  # cos = 6 / (2 * 5) = 3 / 5
    q1, q2 = torch.tensor([1.0, 1.0]), torch.tensor([2.0, 2.0])  # cos = 1
    m1, m2 = torch.tensor([1.0, 0.0]), torch.tensor([-1.0, 0.0])  # cos = -1
    cosine = torch.nn.functional.cosine_similarity
    scores = cosine(torch.stack([p1, n1, q1, m1]), torch.stack([p2, n2, q2, m2]))
    pairs = torch.tensor([[0, 1], [2, 3]])
    # max(1 + 0.6 - 0.6, 0) = 1; max(1 - 1 - 1, 0) = 0
    assert losses.quad(scores, pairs, margin=1.0).item() == pytest.approx(0.5)
    # with a margin of 2.5: 2.5 and 0.5
    assert losses.quad(scores, pairs, margin=2.5).item() == pytest.approx(1.5)


def test_the_sum_weighs_both_alike(vectors):
    with torch.no_grad():
        assert loss_of("quad+mse", vectors) == loss_of("quad", vectors) + loss_of("mse", vectors)


def test_only_rows_of_pairs_feel_the_quadruplet_loss(vectors):
    loss_of("quad", vectors, margin=3.0).backward()
    moved = vectors.grad.abs().sum(dim=1) > 0
    assert moved.tolist() == [True, True, True, True, False] * 2


def test_pairs_apart_by_the_margin_are_left_alone():
    scores = torch.tensor([0.95, -0.1], requires_grad=True)
    losses.quad(scores, torch.tensor([[0, 1]]), margin=1.0).backward()
    assert scores.grad.tolist() == [0, 0]


def test_a_batch_without_pairs_has_a_loss_of_0_that_can_be_differentiated():
    scores = torch.tensor([0.3, 0.4], requires_grad=True)
    loss = losses.quad(scores, torch.zeros(0, 2, dtype=torch.long), margin=1.0)
    loss.backward()
    assert (loss.item(), scores.grad.tolist()) == (0, [0, 0])


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_autograd_s_own_check(name, vectors):
    assert torch.autograd.gradcheck(lambda x: loss_of(name, x), (vectors,), eps=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_central_differences(name, vectors):
    loss_of(name, vectors).backward()
    step, plain = 1e-6, vectors.detach()
    for place in range(plain.numel()):
        up, down = plain.clone(), plain.clone()
        up.view(-1)[place] += step
        down.view(-1)[place] -= step
        expected = (loss_of(name, up) - loss_of(name, down)) / (2 * step)
        assert vectors.grad.view(-1)[place].item() == pytest.approx(expected.item(), abs=1e-8)
