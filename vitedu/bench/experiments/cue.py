"""Can a network compare two distant places? One layer of attention against convolutions.

The cue-matching figure of notebook 06. An image is a grid of 8 x 8 cells, each with one of four
glyphs of 4 x 4 pixels and some noise. The question for every cell: is its glyph that of the cell in
the top left corner, the cue? Glyphs are drawn independently, so that no neighbour gives it away. A
quarter of the cells say yes, so accuracies are balanced: the mean of the share of right answers
among cells that should say yes, and among those that should say no. Guessing gives 50 %.

Legend: B batch, T = 64 cells, D width.
"""

import time
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.bench.experiments import Arms, Results, cut
from vitedu.encoder import EncoderBlock
from vitedu.hardware import Profile

GRID, CELL, WIDTH, HEADS = 8, 4, 64, 4
NOISE = 0.2
# four patterns of 0 and 1, the same in every run
GLYPHS = torch.rand(4, CELL, CELL, generator=torch.Generator().manual_seed(3)).round()
ROWS = torch.arange(GRID)
# (T,), of each cell from the cue at row 0, column 0; a diagonal step counts as one
DISTANCE = torch.maximum(ROWS[:, None], ROWS).flatten()
ARMS: Arms = {
    "1 layer of attention": {"attention": 1, "convolutions": 0},
    "2 convolutions": {"attention": 0, "convolutions": 2},
    "4 convolutions": {"attention": 0, "convolutions": 4},
}


def draw_grids(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw images (count, 1, 32, 32) and answers (count, 64): 1.0 where the cue's glyph is."""
    kinds = torch.randint(4, (count, GRID**2), generator=generator)
    cells = GLYPHS[kinds]  # (B, T, 4, 4)
    cells = cells + NOISE * torch.randn(cells.shape, generator=generator)
    # (B, 16, T) -> (B, 1, 32, 32)
    images = F.fold(cells.flatten(2).mT, GRID * CELL, CELL, stride=CELL)
    return images, (kinds == kinds[:, :1]).float()


class CellNetwork(nn.Module):
    """Cells as tokens, then layers of attention or convolutions, then one answer for every cell."""

    def __init__(self, attention: int, convolutions: int):
        super().__init__()
        self.embed = nn.Conv2d(1, WIDTH, CELL, stride=CELL)
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, GRID**2, WIDTH))
        self.blocks = nn.Sequential(*[EncoderBlock(WIDTH, HEADS) for _ in range(attention)])
        layers = [nn.Conv2d(WIDTH, WIDTH, 3, padding=1) for _ in range(convolutions)]
        self.convolutions = nn.ModuleList(layers)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, 1, 32, 32) to logits (B, 64)."""
        x = self.embed(images)  # (B, D, 8, 8)
        x = x + self.pos_embed.mT.unflatten(-1, (GRID, GRID))
        for layer in self.convolutions:
            x = x + F.relu(layer(x))
        x = self.blocks(x.flatten(2).mT)  # (B, D, 8, 8) -> (B, T, D)
        return self.head(self.norm(x)).squeeze(-1)


def balanced(said: torch.Tensor, is_same: torch.Tensor, *dims: int) -> torch.Tensor:
    """Give the balanced accuracy of answers (B, ...) over these axes."""
    yes = (said & is_same).sum(dim=dims) / is_same.sum(dim=dims)
    no = (~said & ~is_same).sum(dim=dims) / (~is_same).sum(dim=dims)
    return (yes + no) / 2


def by_distance(logits: torch.Tensor, answers: torch.Tensor) -> list[float]:
    """Give the balanced accuracy at distance 1 .. 7 from the cue."""
    said, is_same = logits > 0, answers > 0.5  # (B, T)
    cells = (DISTANCE == d for d in range(1, GRID))
    return [balanced(said[:, at], is_same[:, at], 0, 1).item() for at in cells]


def by_cell(logits: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
    """Give the balanced accuracy of every cell (8, 8); NaN for the cue, always like itself."""
    return balanced(logits > 0, answers > 0.5, 0).unflatten(0, (GRID, GRID))


def train(arm: str, seed: int, steps: int) -> tuple[nn.Module, list[float]]:
    """Train one network, each batch drawn afresh, and give it with its accuracy by distance."""
    torch.manual_seed(seed)
    model = CellNetwork(**ARMS[arm])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    generator = torch.Generator().manual_seed(seed)
    shares: Any = {
        "weight": 1 / (2 * DISTANCE + 1),  # all distances count alike: there are 2 d + 1 cells each
        "pos_weight": torch.tensor(3.0),  # three cells say no for each that says yes
    }
    for _ in range(steps):
        images, answers = draw_grids(64, generator)
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(model(images), answers, **shares).backward()
        optimizer.step()
        schedule.step()
    images, answers = draw_grids(1_000, torch.Generator().manual_seed(10_000))
    with torch.no_grad():
        return model, by_distance(model.eval()(images), answers)


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network and say how often it is right at every distance from the cue."""
    started = time.process_time()
    model, accuracy = train(arm, seed, steps=cut(500, profile, 10))
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        **{f"distance {d}": round(value, 4) for d, value in enumerate(accuracy, start=1)},
        "cpu_seconds": round(time.process_time() - started, 1),
    }
