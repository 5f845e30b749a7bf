"""Notebook 07: what lets a Vision Transformer learn from little.

Role: mixing of images and labels, skipped residual branches, and the losses of three ways to learn
from more than labels: a teacher, hidden patches, another view of the same image. Not here: the
augmentations that ``fit`` applies to whole batches (``vitedu.fitting.augmentation``), figures
(``vitedu.plots.less_data``).

Legend: B batch, C H W image, K classes or prototypes, N patches, M patches that stay visible, D
embed_dim.

References: Zhang et al. 2018, mixup (arXiv 1710.09412); Yun et al. 2019, CutMix (arXiv 1905.04899);
Huang et al. 2016, stochastic depth (arXiv 1603.09382); Touvron et al. 2021, DeiT (arXiv
2012.12877); He et al. 2022, masked autoencoders (arXiv 2111.06377); Caron et al. 2021, DINO (arXiv
2104.14294).
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.encoder import EncoderBlock
from vitedu.extras.options import VisionTransformerWithOptions, ViTConfigWithOptions
from vitedu.patches import add_class_token_and_positions, sincos_positions_2d
from vitedu.vit import VisionTransformer

# how far the label's logit stands above the others where label smoothing of 0.1 over ten classes
# costs least
smoothed_gap = math.log(0.91 / 0.01)
# DINO's loss over 64 prototypes if both networks answer alike for every image: all even, or all
# sure of one
collapse_losses = (math.log(64), 0.0)


def mixup(
    images: torch.Tensor,
    labels: torch.Tensor,
    num_classes: int,
    lam: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Blend every image with a partner of its batch, and the labels in the same proportion.

    A model that must answer "70 % cat, 30 % ship" cannot learn single images by heart.

    Args:
        images: (B, C, H, W) float.
        labels: (B,) int64, the true classes.
        num_classes: K.
        lam: the weight of the image in its own place, in [0, 1]; its partner has the rest.
        permutation: (B,) integers; the partner of image i is image ``permutation[i]``.

    Returns:
        The blended images (B, C, H, W) and soft labels (B, K) in their dtype; each row sums to 1.

    Example:
        >>> images, labels = torch.zeros(2, 3, 4, 4), torch.tensor([0, 2])
        >>> mixup(images, labels, 3, 0.75, torch.tensor([1, 0]))[1]
        tensor([[0.7500, 0.0000, 0.2500],
                [0.2500, 0.0000, 0.7500]])

    Reference: Zhang et al. 2018, equation 1.
    """
    mixed = lam * images + (1 - lam) * images[permutation]
    one_hot = F.one_hot(labels, num_classes).to(mixed.dtype)  # (B,) -> (B, K)
    return mixed, lam * one_hot + (1 - lam) * one_hot[permutation]


def cutmix(
    images: torch.Tensor,
    labels: torch.Tensor,
    num_classes: int,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Paste a rectangle of a partner into every image, and mix the labels by area.

    Unlike mixup it leaves every pixel as it occurs in real images.

    Args:
        images: (B, C, H, W), float or uint8.
        labels: (B,) int64, the true classes.
        num_classes: K.
        box: (top, left, bottom, right) in pixels, bottom and right exclusive. What lies outside of
            the image is cut off; nothing may be left of it.
        permutation: (B,) integers; the rectangle in image i comes from image ``permutation[i]``.

    Returns:
        New images (B, C, H, W) and soft labels (B, K): the partner's weight is the share of the
        image that was pasted. Labels have the dtype of float images, and are float32 for uint8
        images.

    Example:
        >>> images, labels = torch.zeros(2, 3, 4, 4), torch.tensor([0, 2])
        >>> cutmix(images, labels, 3, (0, 2, 2, 9), torch.tensor([1, 0]))[1]
        tensor([[0.7500, 0.0000, 0.2500],
                [0.2500, 0.0000, 0.7500]])

    Reference: Yun et al. 2019, section 3.1. Departure: the box is given, and the label follows its
    exact area.
    """
    H, W = images.shape[-2:]
    top, bottom = (min(max(row, 0), H) for row in (box[0], box[2]))
    left, right = (min(max(column, 0), W) for column in (box[1], box[3]))
    share = max(bottom - top, 0) * max(right - left, 0) / (H * W)
    mixed = images.clone()
    mixed[..., top:bottom, left:right] = images[permutation][..., top:bottom, left:right]
    dtype = images.dtype if images.is_floating_point() else torch.float32
    one_hot = F.one_hot(labels, num_classes).to(dtype)  # (B,) -> (B, K)
    return mixed, (1 - share) * one_hot + share * one_hot[permutation]


def drop_path(
    x: torch.Tensor, drop_prob: float, training: bool, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Skip a residual branch for some samples of a batch, so that no block can rely on another.

    Args:
        x: (B, ...), what a branch adds to the stream.
        drop_prob: the probability of each sample to be dropped.
        training: outside of training x comes back as it is.
        generator: of the draws; torch's own if None. It may live on the CPU while x does not.

    Returns:
        The shape of x. Every sample is dropped as a whole, by its own draw: it is 0, or it is
        divided by ``1 - drop_prob``, so that the mean over many draws is x.

    Raises:
        ValueError: drop_prob is below 0, or is 1 or more; in training and outside of it.

    Example:
        >>> drop_path(torch.ones(4, 2), 0.5, True, torch.Generator().manual_seed(0))
        tensor([[0., 0.],
                [2., 2.],
                [0., 0.],
                [0., 0.]])

    Reference: Huang et al. 2016, section 3. Departure: theirs draws once for a batch and scales in
    eval mode.
    """
    if not 0 <= drop_prob < 1:
        raise ValueError(f"drop_prob must be at least 0 and below 1 (got drop_prob={drop_prob}).")
    if not training or drop_prob == 0:
        return x
    device = x.device if generator is None else generator.device
    stays = torch.rand(len(x), generator=generator, device=device) >= drop_prob
    scale = stays.to(x.device, x.dtype) / (1 - drop_prob)  # (B,): 0, or a little above 1
    return x * scale.reshape(-1, *[1] * (x.ndim - 1))  # (B,) -> (B, 1, ...)


def distillation_loss(
    cls_logits: torch.Tensor,
    dist_logits: torch.Tensor,
    teacher_logits: torch.Tensor,
    labels: torch.Tensor,
) -> torch.Tensor:
    """Learn from the label with one head and from a teacher's answer with another: DeiT, hard
    distillation.

    Args:
        cls_logits: (B, K), of the head that reads the class token.
        dist_logits: (B, K), of the head that reads the distillation token.
        teacher_logits: (B, K), of a trained model.
        labels: (B,) int64, the true classes.

    Returns:
        A 0-d tensor: half the cross-entropy of the class head with the labels, plus half that of
        the distillation head with the class that the teacher finds most likely.

    Example:
        >>> even, labels = torch.zeros(2, 4), torch.tensor([0, 3])
        >>> distillation_loss(even, even, even, labels)  # log(4)
        tensor(1.3863)

    Reference: Touvron et al. 2021, equation 3.
    """
    said = teacher_logits.argmax(dim=-1)  # (B, K) -> (B,)
    from_labels = F.cross_entropy(cls_logits, labels)
    from_teacher = F.cross_entropy(dist_logits, said)
    return 0.5 * from_labels + 0.5 * from_teacher


def random_masking(
    tokens: torch.Tensor, mask_ratio: float, noise: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Hide most tokens of every image, and remember where they were.

    The encoder then sees the few that stay. That is what makes masked autoencoding cheap.

    Args:
        tokens: (B, N, D), with their positions already added.
        mask_ratio: share of the tokens that is hidden, in [0, 1].
        noise: (B, N), random; the ``round(N * (1 - mask_ratio))`` tokens of lowest noise stay.

    Returns:
        The M tokens that stay, in order of their noise (B, M, D); a mask (B, N) in the dtype of the
        tokens, 1 where a token is hidden; and ``restore`` (B, N): entry i is the place of token i
        in the order of noise. So gathering that order with ``restore`` gives the original order.

    Example:
        >>> tokens, noise = torch.zeros(1, 4, 8), torch.tensor([[0.9, 0.1, 0.6, 0.2]])
        >>> kept, mask, restore = random_masking(tokens, 0.5, noise)
        >>> kept.shape, mask.tolist(), restore.tolist()
        (torch.Size([1, 2, 8]), [[1.0, 0.0, 1.0, 0.0]], [[3, 0, 2, 1]])

    Reference: He et al. 2022, section 3, and ``random_masking`` in their code.
    """
    B, N, D = tokens.shape
    M = round(N * (1 - mask_ratio))
    order = noise.argsort(dim=1)  # (B, N): which token comes first, second ...
    restore = order.argsort(dim=1)  # (B, N): at which place each token stands there
    kept = tokens.gather(1, order[:, :M, None].expand(-1, -1, D))  # (B, N, D) -> (B, M, D)
    mask = (restore >= M).to(tokens.dtype)
    return kept, mask, restore


def masked_patch_loss(
    prediction: torch.Tensor, target: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Compare predicted with true pixels where they were hidden, and only there.

    Args:
        prediction: (B, N, C*P*P), pixels of every patch.
        target: (B, N, C*P*P), as they are.
        mask: (B, N), 1 or true where a patch was hidden.

    Returns:
        A 0-d tensor: the squared error, averaged inside each patch and then over all hidden patches
        of the batch together.

    Example:
        >>> prediction, target = torch.ones(2, 3, 12), torch.zeros(2, 3, 12)
        >>> masked_patch_loss(prediction, target, torch.eye(3)[:2])
        tensor(1.)

    Reference: He et al. 2022, section 3. Departure: targets are not normalised.
    """
    error = (prediction - target) ** 2
    per_patch = error.mean(dim=-1)  # (B, N, C*P*P) -> (B, N)
    hidden = mask.to(per_patch.dtype)
    return (per_patch * hidden).sum() / hidden.sum()


def dino_loss(
    student_logits: torch.Tensor,
    teacher_logits: torch.Tensor,
    center: torch.Tensor,
    student_temperature: float = 0.1,
    teacher_temperature: float = 0.04,
) -> torch.Tensor:
    """Ask the student to answer for one view what the teacher answers for another view of the same
    image.

    The teacher is centred, so that no prototype wins everywhere, and sharpened, so that it prefers
    some.

    Args:
        student_logits: (B, K) for one view.
        teacher_logits: (B, K) for another view of the same images. No gradient reaches it.
        center: (K,), a running mean of the teacher's logits, which is subtracted. No gradient
        reaches it.
        student_temperature: divides the student's logits.
        teacher_temperature: divides the centred logits of the teacher; smaller is sharper.

    Returns:
        A 0-d tensor: the cross-entropy of the student's softmax with the teacher's, averaged over
        the batch.

    Example:
        >>> dino_loss(torch.zeros(2, 4), torch.zeros(2, 4), torch.zeros(4))  # log(4)
        tensor(1.3863)

    Reference: Caron et al. 2021, equations 1 to 3 and algorithm 1.
    """
    centred = (teacher_logits - center).detach()
    target = (centred / teacher_temperature).softmax(dim=-1)
    log_student = (student_logits / student_temperature).log_softmax(dim=-1)
    return -(target * log_student).sum(dim=-1).mean()


# --- what the notebook uses and does not ask for --------------------------------------------------


def descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor, lr: float) -> None:
    """Take one step of training with a learning rate of its own: gradients anew, then the update.

    Args:
        optimizer: of the parameters that learn; ``lr`` is set in all its groups.
        loss: 0-d, attached to these parameters.
        lr: of this step, such as ``warmup_cosine`` gives it.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(1))
        >>> descend(torch.optim.SGD([weight]), (weight**2).sum(), 0.25)
        >>> weight.item()
        0.5
    """
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def random_resized_crop(
    images: torch.Tensor, least: float, generator: torch.Generator
) -> torch.Tensor:
    """Cut a random window of every image's own proportions and enlarge it to the whole image.

    Args:
        images: (B, C, H, W) float.
        least: the smallest share of the area that a window has, in (0, 1].
        generator: of all draws, on the device of the images.

    Returns:
        (B, C, H, W), dtype of the images.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> random_resized_crop(torch.zeros(2, 3, 8, 8), 0.25, generator).shape
        torch.Size([2, 3, 8, 8])

    Reference: Szegedy et al. 2015, section 6 (arXiv 1409.4842). Departure: windows keep the aspect
    ratio.
    """
    B = len(images)
    draws = torch.rand(3, B, generator=generator, device=images.device)
    side = (least + (1 - least) * draws[0]).sqrt()  # (B,), as a share of the image's
    shift = (2 * draws[1:] - 1) * (1 - side)  # (2, B), of the middle, in units of half a side
    zero = torch.zeros_like(side)
    rows = torch.stack([side, zero, shift[0]], 1), torch.stack([zero, side, shift[1]], 1)
    grid = F.affine_grid(torch.stack(rows, 1).to(images), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


class DistilledViT(VisionTransformerWithOptions):
    """A ViT with a second token and a second head, which learns from a teacher: DeiT.

    In training it gives the logits of both heads; in eval mode the mean of both, as logits.

    Args:
        config: with a class token and one register, which serves as distillation token; not fused.

    Raises:
        ValueError: fused, whose last block keeps the class token alone.

    Example:
        >>> config = ViTConfigWithOptions(8, 4, embed_dim=12, depth=1, num_heads=3, num_registers=1)
        >>> DistilledViT(config).eval()(torch.zeros(2, 3, 8, 8)).shape
        torch.Size([2, 10])

    Reference: Touvron et al. 2021, section 4. Departure: logits are averaged, where they add
    probabilities.
    """

    def __init__(self, config: ViTConfigWithOptions):
        super().__init__(config)
        if config.fused:
            raise ValueError("the last block of a fused model has one token; use fused=False.")
        self.head_dist = nn.Linear(config.embed_dim, config.num_classes)

    def forward(self, images: torch.Tensor):
        """Map images (B, C, H, W) to (B, K), or to a pair of them in training."""
        x = add_class_token_and_positions(self.patch_embed(images), self.cls_token, self.pos_embed)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)  # (B, T, D): class token, distillation token, patches
        both = self.head(x[:, 0]), self.head_dist(x[:, 1])
        return both if self.training else (both[0] + both[1]) / 2


class MaskedAutoencoder(nn.Module):
    """An encoder that sees a few patches, and a small decoder that guesses the pixels of all.

    Args:
        encoder: with a class token, not fused, without rope and registers. It is kept afterwards.
        masking: the function that hides tokens, such as ``random_masking``.

    Raises:
        ValueError: an encoder with one of these, which cannot see a few patches alone.

    Example:
        >>> from vitedu.vit import ViTConfig
        >>> encoder = VisionTransformer(ViTConfig(8, 4, embed_dim=12, depth=1, num_heads=3))
        >>> model = MaskedAutoencoder(encoder)
        >>> prediction, mask = model(torch.zeros(2, 3, 8, 8), 0.75, torch.rand(2, 4))
        >>> prediction.shape, mask.sum(dim=1)
        (torch.Size([2, 4, 48]), tensor([3., 3.]))

    Reference: He et al. 2022, section 3. Departure: the decoder is as wide as the encoder.
    """

    positions: torch.Tensor

    def __init__(self, encoder: VisionTransformer, masking: Callable = random_masking):
        super().__init__()
        config, D = encoder.config, encoder.config.embed_dim
        if wrong := [n for n in ("fused", "rope", "num_registers") if getattr(config, n, False)]:
            raise ValueError(f"an encoder with {wrong[0]} cannot see a few patches; leave it out.")
        self.encoder, self.masking = encoder, masking
        self.mask_token = nn.Parameter(torch.zeros(1, 1, D))
        self.register_buffer("positions", sincos_positions_2d(config.grid_size, D)[None])
        sizes = D, config.num_heads, config.mlp_ratio
        self.decoder = nn.Sequential(EncoderBlock(*sizes))
        self.to_pixels = nn.Sequential(
            nn.LayerNorm(D), nn.Linear(D, config.in_channels * config.patch_size**2)
        )

    def forward(self, images: torch.Tensor, mask_ratio: float, noise: torch.Tensor):
        """Map images (B, C, H, W), noise (B, N) to predicted pixels (B, N, C*P*P), mask (B, N)."""
        encoder = self.encoder
        x = encoder.patch_embed(images) + encoder.pos_embed[:, 1:]  # (B, N, D)
        visible, mask, restore = self.masking(x, mask_ratio, noise)  # (B, M, D)
        first = (encoder.cls_token + encoder.pos_embed[:, :1]).expand(len(x), -1, -1)
        x = torch.cat([first, visible], dim=1)
        for block in encoder.blocks:
            x = block(x)
        x = encoder.norm(x)[:, 1:]  # (B, M, D)
        B, N, D = mask.shape[0], mask.shape[1], x.shape[-1]
        x = torch.cat([x, self.mask_token.expand(B, N - x.shape[1], -1)], dim=1)
        x = x.gather(1, restore[:, :, None].expand(-1, -1, D)) + self.positions  # image order
        return self.to_pixels(self.decoder(x)), mask


class PrototypeHead(nn.Module):
    """DINO's head: compare a feature with K learned directions, by cosine.

    Args:
        embed_dim: D of the features.
        num_prototypes: K.

    Example:
        >>> PrototypeHead(12, 64)(torch.zeros(2, 12)).shape
        torch.Size([2, 64])

    Reference: Caron et al. 2021, section 3.1. Departure: smaller, and directions of fixed length.
    """

    def __init__(self, embed_dim: int, num_prototypes: int):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(embed_dim, 2 * embed_dim), nn.GELU(), nn.Linear(2 * embed_dim, embed_dim)
        )
        self.prototypes = nn.Parameter(torch.randn(num_prototypes, embed_dim))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Map features (B, D) to cosines (B, K)."""
        directions = F.normalize(self.prototypes, dim=-1)
        return F.normalize(self.mlp(features), dim=-1) @ directions.T
