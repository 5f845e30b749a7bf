"""Right answers to 3.4 VisionTransformer, and what becomes of its mutants."""

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.vit import VisionTransformer


class Plain(VisionTransformer):
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


class Unfolded(VisionTransformer):
    def forward(self, images):
        kernel = self.patch_embed.proj.weight
        columns = F.unfold(images, kernel.shape[-1], stride=kernel.shape[-1]).mT
        tokens = columns @ kernel.flatten(1).T + self.patch_embed.proj.bias
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
)
