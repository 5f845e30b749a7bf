"""Notebook 05: what a model has learned.

Role: what to look at inside a trained model, and the measurements that decide whether to believe
it. Not here: running a model and keeping what passes through it (``vitedu.vit.capture``), figures.

Legend: B batch, T tokens, N patches, D embed_dim, nh heads, gh gw patch grid, K classes, L layers.

References: Dosovitskiy et al. 2020, figures 6, 7 and 11 (arXiv 2010.11929); Abnar and Zuidema 2020,
"Quantifying Attention Flow in Transformers" (arXiv 2005.00928); Zhang et al. 2016, the pointing
game (arXiv 1608.00507); Chefer, Gur and Wolf 2021, "Generic Attention-model Explainability" (arXiv
2103.15679).
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

# mean distance, in patches, between two places of an 8 x 8 grid that are drawn apart from each
# other
uniform_distance = sum(
    math.hypot(row, column) * (8 - abs(row)) * (8 - abs(column)) / 8**4
    for row in range(-7, 8)
    for column in range(-7, 8)
)
# of rollout's first row, what stays on the class token: 4 layers, 65 tokens, uniform attention
rollout_self_share = 0.5**4 + (1 - 0.5**4) / 65


def class_attention(weights: torch.Tensor, grid_size: tuple[int, int]) -> torch.Tensor:
    """Pick out how much the class token attends to every patch.

    Args:
        weights: (B, nh, T, T) of one layer; the class token is token 0, the last N tokens are
        patches.
        grid_size: (gh, gw).

    Returns:
        (B, nh, gh, gw). The rows are not normalised again, so what is missing to 1 stays with the
        class token itself, and with registers where there are some.

    Example:
        >>> class_attention(torch.full((2, 3, 5, 5), 0.2), (2, 2)).shape
        torch.Size([2, 3, 2, 2])
    """
    gh, gw = grid_size
    return weights[:, :, 0, -gh * gw :].unflatten(-1, (gh, gw))


def attention_rollout(layers: Sequence[torch.Tensor]) -> torch.Tensor:
    """Follow attention through all layers, as if nothing but attention moved anything.

    Every layer becomes one matrix: the mean over its heads, plus the identity for the residual
    path, halved, each row divided by its sum. Rollout is the product of these matrices.

    Args:
        layers: attention weights (B, nh, T, T) of every layer, the first layer first. Their rows
            need not sum to 1.

    Returns:
        (B, T, T): row i says how much of each input token rollout finds in token i of the last
        layer.

    Example:
        >>> attention_rollout([torch.full((2, 3, 5, 5), 0.2)] * 4).shape
        torch.Size([2, 5, 5])

    Reference: Abnar and Zuidema 2020, section 3.
    """
    first = layers[0]
    identity = torch.eye(first.shape[-1], dtype=first.dtype, device=first.device)
    rollout = identity
    for weights in layers:
        step = (weights.mean(dim=1) + identity) / 2  # (B, nh, T, T) -> (B, T, T)
        step = step / step.sum(dim=-1, keepdim=True)
        rollout = step @ rollout
    return rollout


def relevance_rollout(
    attentions: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Follow through all layers the attention that speaks for one answer.

    Rollout knows only how much is looked at. Here a weight counts as far as the score grows with
    it: weight times gradient, where this is above zero, as the mean over the heads.

    Args:
        attentions: weights (B, nh, T, T) of every layer, the first layer first. Another layer may
            have another number of heads.
        gradients: of the same shapes: the gradient, by each weight, of the score to explain.

    Returns:
        (B, T, T), not normalised: the identity, and for each layer what it adds. Row i says how
        much each input token did for the score through token i of the last layer.

    Example:
        >>> layers = [torch.full((2, 3, 5, 5), 0.2)] * 4
        >>> relevance_rollout(layers, layers).shape
        torch.Size([2, 5, 5])

    Reference: Chefer, Gur and Wolf 2021, section 3.1, equations 5 and 6.
    """
    first = attentions[0]
    relevance = torch.eye(first.shape[-1], dtype=first.dtype, device=first.device)
    for weights, slopes in zip(attentions, gradients, strict=True):
        step = (slopes * weights).relu().mean(dim=1)  # (B, nh, T, T) -> (B, T, T)
        relevance = relevance + step @ relevance
    return relevance


def pointing_game(attention: torch.Tensor, masks: torch.Tensor) -> float:
    """Measure how often the hottest patch of a map meets the object.

    Args:
        attention: (B, gh, gw), one map an image. Of several patches that are equally hot the first
            counts, in reading order.
        masks: (B, H, W), boolean, true on the object; H and W are multiples of gh and gw.

    Returns:
        The share of images, in [0, 1], whose hottest patch covers at least one pixel of the object.

    Example:
        >>> masks = torch.zeros(1, 4, 4, dtype=torch.bool)
        >>> masks[0, 1, 3] = True
        >>> pointing_game(torch.tensor([[[0.1, 0.6], [0.2, 0.1]]]), masks)
        1.0

    Reference: Zhang et al. 2016, section 4.2. Departure: they point with a pixel, here it is a
    patch.
    """
    B, gh, gw = attention.shape
    H, W = masks.shape[-2:]
    cells = masks.reshape(B, gh, H // gh, gw, W // gw)  # (B, H, W) -> (B, gh, P, gw, P)
    touched = cells.any(dim=4).any(dim=2)  # -> (B, gh, gw)
    hottest = attention.flatten(1).argmax(dim=1, keepdim=True)  # (B, 1)
    return touched.flatten(1).gather(1, hottest).double().mean().item()


def logit_lens(layers: Sequence[torch.Tensor], norm: nn.Module, head: nn.Module) -> torch.Tensor:
    """Ask after every block what the model would answer if it ended there.

    Args:
        layers: tokens (B, T, D) after each block, the first block first.
        norm: the model's final norm.
        head: the model's head.

    Returns:
        (L, B, K): the logits that the class token, token 0, would give after each block.

    Example:
        >>> layers = [torch.zeros(2, 5, 8)] * 4
        >>> logit_lens(layers, nn.LayerNorm(8), nn.Linear(8, 3)).shape
        torch.Size([4, 2, 3])

    Reference: nostalgebraist 2020, "interpreting GPT: the logit lens", on lesswrong.com.
    """
    return torch.stack([head(norm(tokens[:, 0])) for tokens in layers])  # (B, D) -> (L, B, K)


def position_similarity(pos_embed: torch.Tensor, grid_size: tuple[int, int]) -> torch.Tensor:
    """Compare the position of every patch with that of every other.

    Args:
        pos_embed: (1, T, D); rows before the last N belong to other tokens and are dropped.
        grid_size: (gh, gw).

    Returns:
        (N, gh, gw), cosine similarities.

    Example:
        >>> position_similarity(torch.ones(1, 5, 8), (2, 2)).shape
        torch.Size([4, 2, 2])
    """
    gh, gw = grid_size
    unit = torch.nn.functional.normalize(pos_embed[0, -gh * gw :], dim=-1)  # (N, D)
    return (unit @ unit.T).unflatten(-1, (gh, gw))


def confusion_matrix(
    predictions: torch.Tensor, labels: torch.Tensor, num_classes: int
) -> torch.Tensor:
    """Count which class was taken for which.

    Args:
        predictions: (n,) classes that a model named.
        labels: (n,) true classes.
        num_classes: K.

    Returns:
        (K, K) int64; rows are true classes, columns are answers.

    Example:
        >>> confusion_matrix(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), 2).tolist()
        [[1, 1], [0, 1]]
    """
    pairs = labels * num_classes + predictions
    return torch.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


# --- measurements that the notebook uses and does not ask for -------------------------------------


def grid_distances(grid_size: tuple[int, int]) -> torch.Tensor:
    """Measure how far apart the patches of a grid are.

    Returns:
        (N, N), Euclidean distances in patches.

    Example:
        >>> grid_distances((1, 3))[0]
        tensor([0., 1., 2.])
    """
    gh, gw = grid_size
    places = torch.cartesian_prod(torch.arange(gh), torch.arange(gw)).float()  # (N, 2)
    return torch.cdist(places, places)


def attention_distance(weights: torch.Tensor, grid_size: tuple[int, int]) -> torch.Tensor:
    """Measure how far the patches of each head look, on average.

    Args:
        weights: (B, nh, T, T) of one layer; the last N tokens are patches.
        grid_size: (gh, gw).

    Returns:
        (nh,) in patches: the distance from a query patch to the patches that it attends to,
        weighted by attention, averaged over queries and images. Weights on other tokens do not
        count.

    Example:
        >>> attention_distance(torch.eye(5).expand(2, 3, 5, 5), (2, 2))
        tensor([0., 0., 0.])

    Reference: Dosovitskiy et al. 2020, figure 11.
    """
    apart = grid_distances(grid_size).to(weights)  # (N, N)
    N = len(apart)
    among = weights[:, :, -N:, -N:]
    among = among / among.sum(dim=-1, keepdim=True)
    return (among * apart).sum(dim=-1).mean(dim=(0, 2))


def input_gradient(
    model: nn.Module, images: torch.Tensor, grid_size: tuple[int, int]
) -> torch.Tensor:
    """Measure how strongly every patch of pixels acts on the model's own answer.

    Args:
        model: maps images (B, C, H, W) to logits (B, K); in eval mode.
        images: (B, C, H, W), as the model takes them.
        grid_size: (gh, gw).

    Returns:
        (B, gh, gw): absolute derivatives of the largest logit, summed over channels and over the
        pixels of a patch.

    Example:
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(48, 3))
        >>> input_gradient(model, torch.zeros(2, 3, 4, 4), (2, 2)).shape
        torch.Size([2, 2, 2])

    Reference: Simonyan et al. 2013, section 3 (arXiv 1312.6034). Departure: they keep the largest
    channel.
    """
    images = images.detach().clone().requires_grad_()
    largest = model(images).amax(dim=-1).sum()
    (slope,) = torch.autograd.grad(largest, images)
    gh, gw = grid_size
    cells = slope.abs().sum(dim=1).unflatten(2, (gw, -1)).unflatten(1, (gh, -1))
    return cells.sum(dim=(2, 4))  # (B, gh, P, gw, P) -> (B, gh, gw)


def attention_gradients(
    model: nn.Module, images: torch.Tensor
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Give every block's weights, and how the model's own answer depends on each of them.

    ``capture`` keeps weights too, but runs without gradients.

    Args:
        model: a ViT in eval mode; the ``attn`` of each block returns output and weights.
        images: (B, C, H, W), as the model takes them.

    Returns:
        Two lists of (B, nh, T, T), the first block first: weights, and derivatives by them of the
        largest logit of each image. Images do not mix, so one backward pass serves all.

    Example:
        >>> from vitedu.vit import PRESETS, VisionTransformer
        >>> model = VisionTransformer(PRESETS["vit_micro_patch8_32"]).eval()
        >>> attentions, gradients = attention_gradients(model, torch.zeros(2, 3, 32, 32))
        >>> len(gradients), gradients[0].shape
        (4, torch.Size([2, 4, 17, 17]))
    """
    layers: list[Any] = [block.attn for block in model.blocks]  # type: ignore[union-attr]
    attentions: list[torch.Tensor] = []
    keep = [
        layer.register_forward_hook(lambda *call: attentions.append(call[2][1])) for layer in layers
    ]
    try:
        largest = model(images.detach().clone().requires_grad_()).amax(dim=-1).sum()
    finally:
        for handle in keep:
            handle.remove()
    gradients = torch.autograd.grad(largest, attentions)
    return [each.detach() for each in attentions], list(gradients)


def maps_of(model: Any, images: torch.Tensor) -> dict[str, torch.Tensor]:
    """Draw up four maps (B, gh, gw) that claim to show what matters to the model's own answer."""
    N, grid = model.config.num_patches, model.config.grid_size
    weights, gradients = attention_gradients(model, images)
    rolled, relevant = attention_rollout(weights), relevance_rollout(weights, gradients)
    return {
        "last block": class_attention(weights[-1], grid).mean(dim=1),
        "rollout": rolled[:, 0, -N:].unflatten(1, grid),
        "gradient": input_gradient(model, images, grid),
        "relevance": relevant[:, 0, -N:].unflatten(1, grid),
    }


def edges_by_patch(images: torch.Tensor, grid_size: tuple[int, int]) -> torch.Tensor:
    """Measure how much the grey of images (B, C, H, W) differs from the pixels below and right.

    No model is asked. The result (B, gh, gw) has the mean of each patch.

    Example:
        >>> edges_by_patch(torch.tensor([[[[0.0, 0.0, 5.0, 0.0]] * 2]]), (1, 2))
        tensor([[[2.5000, 2.5000]]])
    """
    grey = images.mean(dim=1, keepdim=True)
    below, right = grey.diff(dim=2).abs(), grey.diff(dim=3).abs()
    edges = F.pad(below, (0, 0, 0, 1)) + F.pad(right, (0, 1))
    return F.adaptive_avg_pool2d(edges, grid_size)[:, 0]


def nearness_to_middle(grid_size: tuple[int, int]) -> torch.Tensor:
    """Score the patches of a grid (gh, gw): 0 in its middle, and less the further away."""
    gh, gw = (torch.arange(size) - (size - 1) / 2 for size in grid_size)
    return -(gh.square()[:, None] + gw.square())


@torch.no_grad()
def answers_changed(
    model: nn.Module, images: torch.Tensor, scores: torch.Tensor, counts: Sequence[int]
) -> list[float]:
    """Blank so many patches with the largest scores (B, gh, gw): the shares of answers that change.

    Example:
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(48, 3))
        >>> answers_changed(model, torch.ones(2, 3, 4, 4), torch.rand(2, 2, 2), (1, 4))
        [0.0, 0.0]
    """
    before, grid_size = model(images).argmax(dim=1), (scores.shape[1], scores.shape[2])
    shares = []
    for count in counts:
        chosen = scores.flatten(1).topk(count).indices
        after = model(blank_patches(images, chosen, grid_size)).argmax(dim=1)
        shares.append((after != before).double().mean().item())
    return shares


def blank_patches(
    images: torch.Tensor, chosen: torch.Tensor, grid_size: tuple[int, int]
) -> torch.Tensor:
    """Give every pixel of the chosen patches the mean colour of its image.

    Args:
        images: (B, C, H, W), floats.
        chosen: (B, k), for each image the numbers of k patches, counted row by row.
        grid_size: (gh, gw).

    Returns:
        (B, C, H, W), copies.

    Example:
        >>> blank_patches(torch.tensor([[[[0.0, 2.0, 4.0]]]]), torch.tensor([[0]]), (1, 3))
        tensor([[[[2., 2., 4.]]]])

    Reference: Zeiler and Fergus 2013, section 4.2 (arXiv 1311.2901), who slide a grey square.
    """
    (gh, gw), (H, W) = grid_size, images.shape[-2:]
    is_blank = torch.zeros(len(images), gh * gw, dtype=torch.bool).scatter(1, chosen, True)
    is_blank = is_blank.view(-1, 1, gh, gw)  # (B, N) -> (B, 1, gh, gw)
    is_blank = is_blank.repeat_interleave(H // gh, 2).repeat_interleave(W // gw, 3)
    return torch.where(is_blank, images.mean(dim=(2, 3), keepdim=True), images)


@torch.no_grad()
def falls_by_patch(
    model: nn.Module, image: torch.Tensor, grid_size: tuple[int, int]
) -> torch.Tensor:
    """Blank each patch of one image alone, and measure by how much the answer falls.

    Args:
        model: maps images (B, C, H, W) to logits (B, K); in eval mode.
        image: (C, H, W), as the model takes it.
        grid_size: (gh, gw).

    Returns:
        (gh, gw): the probability of the model's own answer to the whole image, minus what is left
        of it; negative where the answer grows.

    Example:
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(48, 3))
        >>> falls_by_patch(model, torch.ones(3, 4, 4), (2, 2)).abs().max() < 1e-6
        tensor(True)
    """
    N = grid_size[0] * grid_size[1]
    each = blank_patches(image.expand(N, *image.shape), torch.arange(N)[:, None], grid_size)
    whole = model(image[None]).softmax(dim=-1)[0]  # (K,)
    answer = whole.argmax()
    return (whole[answer] - model(each).softmax(dim=-1)[:, answer]).unflatten(0, grid_size)


def nearest_accuracy(
    features: torch.Tensor, labels: torch.Tensor, of: torch.Tensor, truth: torch.Tensor, k: int = 10
) -> float:
    """Classify by the most frequent label among the k nearest neighbours, by cosine, and give the
    accuracy.

    Args:
        features: (n, D) of images whose labels may be used.
        labels: (n,).
        of: (m, D) of the images to classify.
        truth: (m,) their labels.
        k: how many neighbours vote; of equal votes the smallest label wins.

    Example:
        >>> features, labels = torch.eye(3), torch.tensor([0, 1, 2])
        >>> nearest_accuracy(features, labels, 2 * torch.eye(3), labels, k=1)
        1.0
    """
    normalize = torch.nn.functional.normalize
    near = (normalize(of, dim=-1) @ normalize(features, dim=-1).T).topk(k, dim=-1).indices  # (m, k)
    return (labels[near].mode(dim=-1).values == truth).double().mean().item()


def probe_accuracy(
    features: torch.Tensor, labels: torch.Tensor, of: torch.Tensor, truth: torch.Tensor
) -> float:
    """Fit one linear layer to frozen features and give its accuracy on others.

    The features are standardised; cross-entropy with a little weight decay is brought to its
    minimum.

    Args:
        features: (n, D) of the images to learn from.
        labels: (n,).
        of: (m, D) of the images to classify.
        truth: (m,) their labels.

    Example:
        >>> features, labels = torch.eye(3).repeat(4, 1), torch.arange(3).repeat(4)
        >>> probe_accuracy(features, labels, torch.eye(3), torch.arange(3))
        1.0
    """
    weight, bias = fit_probe(features, labels)
    return ((of @ weight.T + bias).argmax(dim=-1) == truth).double().mean().item()


def fit_probe(features: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Fit one linear layer to features (n, D) as ``probe_accuracy`` says: (K, D) and (K,)."""
    mean, std = features.mean(dim=0), features.std(dim=0) + 1e-6
    x = (features - mean) / std
    weight = torch.zeros(int(labels.max()) + 1, x.shape[1], requires_grad=True)
    bias = torch.zeros(len(weight), requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=50, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        price = torch.nn.functional.cross_entropy(x @ weight.T + bias, labels)
        price = price + 1e-3 * weight.square().sum()
        price.backward()
        return price

    optimizer.step(loss)
    weight = weight.detach() / std  # on features that are not standardised
    return weight, bias.detach() - weight @ mean
