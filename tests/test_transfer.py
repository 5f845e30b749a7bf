"""vitedu.transfer: the values that notebook 09 names, and losses of large logits.

That its functions equal other roads to the same result is proved by the right answers of their
banks, and by the models of other libraries (test_conversions).
"""

import torch
from torch import nn

from vitedu.transfer import (
    LoRALinear,
    blind_losses,
    clip_loss,
    lora_parameters,
    sigmoid_contrastive_loss,
)


def test_losses_stay_finite_at_logits_of_ten_thousand():
    """With gradients, in float32."""
    torch.manual_seed(0)
    image, text = torch.randn(5, 3, requires_grad=True), torch.randn(5, 3)
    for loss in (clip_loss(image, text, 1e-4), sigmoid_contrastive_loss(image, text, 1e4, -1e4)):
        (gradient,) = torch.autograd.grad(loss, image)
        assert loss.isfinite() and loss > 100 and gradient.isfinite().all()


def test_values_are_what_a_student_would_measure():
    """Adapters of ViT-B/16, and the losses of features that say nothing."""
    layer = LoRALinear(nn.Linear(768, 3 * 768), rank=8, alpha=8)
    assert 12 * sum(p.numel() for p in layer.parameters() if p.requires_grad) == lora_parameters
    image, text = torch.eye(128)[:64], torch.eye(128)[64:]
    measured = (
        clip_loss(image, text, 0.07),
        *(sigmoid_contrastive_loss(image, text, 10.0, b) for b in (0.0, -10.0)),
    )
    torch.testing.assert_close(torch.stack(measured), torch.tensor(blind_losses), rtol=1e-5, atol=0)
