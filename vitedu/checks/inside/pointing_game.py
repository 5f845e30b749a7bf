"""5.8 pointing_game: does a map point at the object?."""

import torch
from torch import Generator

from vitedu.checks.writing.kit import Case, distinct, draw, normal

IMAGES = 60  # so that no two mistakes score alike by chance


def cases(g: Generator) -> list[Case]:
    """Draw maps, and masks with an object of any size and stray pixels that touch a patch alone."""
    gh, gw, P = distinct(g, 3, 3, 6)  # P: the height of a patch, Q: its width

    def case(note="", part="other sizes", B=IMAGES, gh=gh, gw=gw, P=P, Q=None, **rest):
        Q, ties, close = Q or P, rest.pop("ties", False), rest.pop("close", False)
        maps = normal(g, B, gh, gw).flatten(1).softmax(dim=-1).unflatten(1, (gh, gw))
        maps += rest.pop("above", 0.0)
        if close:  # to float32 all are alike
            maps = 0.5 + 1e-9 * normal(g, B, gh, gw, dtype=torch.float64)
        if ties:
            maps = (8 * maps).round().clamp(max=1) / 8
        rows, columns = torch.arange(gh * P)[None, :, None], torch.arange(gw * Q)
        top, left, tall, wide = torch.rand(4, B, 1, 1, generator=g)
        inside = (rows - gh * P * top).abs() < gh * P * tall / 3
        inside = inside & ((columns - gw * Q * left).abs() < gw * Q * wide / 3)
        masks = inside | (torch.rand(B, gh * P, gw * Q, generator=g) < 0.4 / (P * Q))
        if ties:  # the last of equals lies below every object
            masks[:, gh * P // 2 :] = False
        # most maps hit, so that no other rule scores alike by chance; a single map hits for sure,
        # and no other patch does
        if B == 1:
            maps[:, 1, 0], masks[:] = 1, False
        hottest = maps.flatten(1).argmax(dim=1)
        hits = torch.rand(B, generator=g) < (0.8 if B > 1 else 1.0)
        masks[hits, (hottest // gw * P + P - 1)[hits], (hottest % gw * Q + Q - 1)[hits]] = True
        if B > 1:  # one image without any object
            masks[0] = False
        name = f"{B} maps of {gh} x {gw}, masks of {gh * P} x {gw * Q} px{note}"
        args = {"attention": maps, "masks": masks}
        return Case(name, args, part, number=True, rtol=1e-5, atol=1e-6, **rest)

    return [
        case(", some equally hot", "values", ties=True),
        case(", one hottest patch each", "clear maps", B=IMAGES + 1),
        case(gh=gh + draw(g, 3, 4), gw=2),
        case(gh=gw, note=", all values below 0", above=-1.0),
        case(gh=9, gw=9, B=9, P=2),
        case(gh=1, gw=gw + 1),
        case(B=1, note=", one image", part="batch of one"),
        case(", float64, nearly alike", "rare maps", close=True),
        case(", axes turned round in memory", "layout", turned=True),
        case(", patches of one pixel", "rare maps", P=1),
        case(", patches of 121 pixels", "rare maps", P=11),
        case(", patches that are not square", "rare maps", Q=P - 1),
        case(", patches that are not square", "rare maps", Q=P + 2),
    ]
