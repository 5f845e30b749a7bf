"""Right answers to 3.5 VisionTransformer, and what becomes of its mutants."""

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.encoder import EncoderBlock
from vitedu.patches import PatchEmbed
from vitedu.vit import BlockWithoutBias, VisionTransformer, initialise


class Plain(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.embed_dim
        self.patch_embed = PatchEmbed(config.patch_size, config.in_channels, width)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        N = (config.image_size // config.patch_size) ** 2
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, N + 1, width))
        self.blocks = nn.ModuleList()
        for _ in range(config.depth):
            block = EncoderBlock(width, config.num_heads, config.mlp_ratio)
            if not config.qkv_bias:
                block.attn.qkv.bias = None
            self.blocks.append(block)
        self.norm = nn.LayerNorm(width, 1e-6)
        self.head = nn.Linear(width, config.num_classes)
        initialise(self)

    def forward(self, images):
        x = self.patch_embed.proj(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.repeat(x.size(0), 1, 1), x), dim=1)
        x = x + self.pos_embed
        for i in range(len(self.blocks)):
            x = self.blocks[i](x)
        return self.head(self.norm(x)[:, 0, :])


class Sequential(VisionTransformer):
    """The class token is picked before the norm, which is the same."""

    def forward(self, images):
        patches = self.patch_embed(images) + self.pos_embed[:, 1:]
        first = (self.cls_token + self.pos_embed[:, :1]).expand(len(images), -1, -1)
        encoded = nn.Sequential(*self.blocks)(torch.hstack([first, patches]))
        return self.head(self.norm(encoded.select(1, 0)))


class Unfolded(nn.Module):
    def __init__(self, config):
        super().__init__()
        D, P, make = config.embed_dim, config.patch_size, EncoderBlock
        proj = nn.Conv2d(config.in_channels, D, kernel_size=P, stride=P)
        self.patch_embed = nn.ModuleDict({"proj": proj})
        self.cls_token, self.pos_embed = (
            nn.Parameter(torch.empty(1, T, D).normal_()) for T in (1, config.num_patches + 1)
        )
        if not config.qkv_bias:
            make = BlockWithoutBias
        blocks = [make(D, config.num_heads, config.mlp_ratio) for _ in range(config.depth)]
        self.blocks = nn.Sequential(*blocks)
        self.norm, self.head = nn.LayerNorm(D, eps=1e-6), nn.Linear(D, config.num_classes)
        initialise(self)

    def forward(self, images):
        kernel = self.patch_embed["proj"].weight
        columns = F.unfold(images, kernel.shape[-1], stride=kernel.shape[-1]).mT
        tokens = columns @ kernel.flatten(1).T + self.patch_embed["proj"].bias
        x = F.pad(tokens, (0, 0, 1, 0)).clone()
        x[:, 0] = self.cls_token.squeeze()
        x = x + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x)[:, 0], self.head.weight, self.head.bias)


class ImageByImage(VisionTransformer):
    def forward(self, images):
        rows = []
        for image in images:
            x = torch.cat([self.cls_token[0], self.patch_embed(image[None])[0]]) + self.pos_embed[0]
            x = x[None]
            for block in self.blocks:
                x = block(x)
            rows.append(self.head(self.norm(x[0, 0])))
        return torch.stack(rows)


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(images) == 1",
    "images.shape[1] == 1",
    "len(self.blocks) == 0",
    "len(self.blocks) == 1",
    "self.patch_embed.proj.kernel_size[0] == images.shape[2]",
    "self.head.out_features == 1",
    "images[0, 0].numel() > 64 * self.patch_embed.proj.kernel_size[0] ** 2",
    "len(images) == 9",
    "len(self.blocks) == 7",
)

LEFT_OPEN = {
    "initialise draws both anew, and logits need no configuration": (
        "without: self.config = config",
        "self.cls_token = nn.Parameter(torch.ones(1, 1, D))",
        "self.pos_embed = nn.Parameter(torch.ones(1, config.num_tokens, D))",
    ),
}
