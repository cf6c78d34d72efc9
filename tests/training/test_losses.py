"""The losses by hand, by loops and by autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from training import losses
from training.losses import (
    cosine_regression,
    hard_negative_contrast,
    in_batch_contrast,
    mse,
    multiple_negatives_ranking,
    supervised_contrast,
)


def test_every_public_loss_is_tested_here():
    assert len(losses.__all__) == 6
    assert set(losses.__all__) <= set(globals())


def test_supervised_contrast_equals_its_definition():
    torch.manual_seed(1)
    vectors = torch.nn.functional.normalize(torch.randn(6, 5), dim=1)
    labels = torch.tensor([0, 0, 1, 1, 1, 2])
    total, rows = 0.0, 0
    for i in range(6):
        partners = [p for p in range(6) if p != i and labels[p] == labels[i]]
        if partners:
            below = sum(torch.exp(vectors[i] @ vectors[a] / 0.1) for a in range(6) if a != i)
            total -= sum(torch.log(torch.exp(vectors[i] @ vectors[p] / 0.1) / below) for p in partners) / len(partners)
            rows += 1
    torch.testing.assert_close(supervised_contrast(vectors, labels, 0.1), total / rows)


def test_a_batch_without_partners_teaches_nothing():
    vectors = torch.nn.functional.normalize(torch.randn(3, 4), dim=1)
    assert supervised_contrast(vectors, torch.tensor([0, 1, 2]), 0.1) == 0


def test_equation_1_by_hand():
    # Two pairs at right angles, τ = ½: the positive scores e², the other e⁰.
    eye = torch.eye(2)
    assert multiple_negatives_ranking(eye, eye, 0.5).item() == pytest.approx(-np.log(np.e**2 / (np.e**2 + 1)), abs=1e-6)


def test_equation_2_by_hand():
    # As hard negative each anchor has the other's positive, so it is counted twice.
    eye = torch.eye(2)
    expected = -np.log(np.e**2 / (2 * np.e**2 + 2))
    assert multiple_negatives_ranking(eye, eye, 0.5, eye).item() == pytest.approx(expected, abs=1e-6)


def test_the_cosine_regression_by_hand():
    """By hand: a pair at 60° and one at right angles, scored 1 and ½."""
    first, second = torch.tensor([[1.0, 0], [0, 1]]), torch.tensor([[0.5, 0.75**0.5], [1, 0]])
    assert cosine_regression(first, second, torch.tensor([1.0, 0.5])).item() == pytest.approx((0.25 + 0.25) / 2)


def test_a_hard_negative_is_equation_2_of_a_batch_of_one():
    generator = torch.Generator().manual_seed(0)
    anchor, positive, negative = (F.normalize(torch.randn(5, 7, generator=generator), dim=-1) for _ in range(3))
    rows = zip(anchor, positive, negative, strict=True)
    alone = [multiple_negatives_ranking(a[None], p[None], 0.2, n[None]) for a, p, n in rows]
    torch.testing.assert_close(hard_negative_contrast(anchor, positive, negative, 0.2), torch.stack(alone).mean())


def test_the_hand_made_gradient_is_autograds():
    generator = torch.Generator().manual_seed(0)
    left, right = (F.normalize(torch.randn(24, 16, generator=generator), dim=-1) for _ in range(2))
    same = torch.zeros(24, 24, dtype=torch.bool)
    same[3, 5] = same[5, 3] = True
    ours_left, ours_right = left.clone().requires_grad_(), right.clone().requires_grad_()
    loss = in_batch_contrast(ours_left, ours_right, same, 0.1)
    loss.backward()
    theirs_left, theirs_right = left.clone().requires_grad_(), right.clone().requires_grad_()
    scores = (theirs_left @ theirs_right.T / 0.1).masked_fill(same, -1e9)
    own = torch.arange(24)
    expected = (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=0.01)
    for ours, theirs in ((ours_left, theirs_left), (ours_right, theirs_right)):
        assert F.cosine_similarity(ours.grad.flatten(), theirs.grad.flatten(), dim=0) > 0.999


def test_the_loss_is_the_squared_distance_and_of_unit_rows_2_minus_2_cos():
    rows = torch.nn.functional.normalize(torch.randn(2, 9, 5, generator=torch.Generator().manual_seed(1)), dim=-1)
    assert mse(rows[0], rows[1]).item() == pytest.approx((2 - 2 * (rows[0] * rows[1]).sum(-1)).mean().item(), abs=1e-6)
    assert mse(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2)).item() == 25
