import torch
import torch.nn.functional as F

from vitedu.checks import families
from vitedu.checks.kit import Case, Checker, Layer, Mistake, distinct, normal, plural, usual


def cases(g: torch.Generator) -> list[Case]:
    """Draw tokens of several blocks, a norm that scales and shifts, and a head."""
    B, T, D, K, L = distinct(g, 5, 3, 8)

    def case(
        note="",
        part="other sizes",
        B=B,
        T=T,
        L=L,
        dtype=torch.float32,
        spread=30.0,
        bias=True,
        **rest,
    ):
        layers = [spread * (1 + i) * normal(g, B, T, D, dtype=dtype) for i in range(L)]
        shift, vector = normal(g, 2, D, dtype=dtype), normal(g, K, dtype=dtype) if bias else None
        norm = Layer(1 + 0.5 * shift[0], shift[1])
        head = Layer(normal(g, K, D, dtype=dtype) / D**0.5, vector)
        name = f"{plural(L, 'block')}, {plural(B, 'image')}, {plural(T, 'token')} of {D}{note}"
        args = {"layers": layers, "norm": norm, "head": head}
        return Case(name, args, part, rtol=1e-4, atol=1e-5, **rest)

    return [
        case(part="values", gradients=("layers",)),
        case(L=1),
        case(B=1),
        case(L=B),
        case(", a head without bias", bias=False),
        case(", tokens that hardly vary", spread=1e-3),
        *usual(case),
    ]


READ = "head(norm(tokens[:, 0]))"
MISTAKES = (
    Mistake(
        "no_norm",
        "the final norm is left out",
        "norm first, then the head",
        "The head has only ever seen normalised tokens. Without the norm, the scale of each block decides.",
        "Use norm before head.",
        {"norm(tokens[:, 0])": "tokens[:, 0]"},
    ),
    Mistake(
        "norm_on_last_only",
        "only the last layer is normalised",
        "norm first, then the head, at every layer",
        "The head has only ever seen normalised tokens.",
        "Use norm for every layer.",
        {"norm(tokens[:, 0])": "norm(tokens[:, 0]) if tokens is layers[-1] else tokens[:, 0]"},
    ),
    Mistake(
        "norm_redone",
        "the norm is computed anew, with another eps than the module's",
        "the module norm, called",
        "The model's norm has an eps of its own, and it need not be a LayerNorm.",
        "Call norm.",
        {
            "norm(tokens[:, 0])": "torch.nn.functional.layer_norm(tokens[:, 0], tokens.shape[-1:], norm.weight, norm.bias)"
        },
        part="other sizes",
    ),
    Mistake(
        "norm_of_mean",
        "the mean of all tokens is read",
        "the class token, token 0",
        "This head learned to read the class token.",
        "Pick token 0.",
        {"tokens[:, 0]": "tokens.mean(dim=1)"},
        also=({"norm(tokens[:, 0])": "norm(tokens).mean(dim=1)"},),
    ),
    Mistake(
        "mean_of_patches",
        "the mean of the patches is read",
        "the class token, token 0",
        "This head learned to read the class token.",
        "Pick token 0.",
        {"tokens[:, 0]": "tokens[:, 1:].mean(dim=1)"},
    ),
    families.LAST_TOKEN.by({"tokens[:, 0]": "tokens[:, -1]"}),
    families.FIRST_PATCH.by({"tokens[:, 0]": "tokens[:, 1]"}),
    Mistake(
        "every_token",
        "every token is read",
        "one answer for an image after each block: (L, B, K)",
        "Only the class token speaks for the image.",
        "Pick token 0.",
        {"tokens[:, 0]": "tokens"},
    ),
    Mistake(
        "first_image",
        "the first image is read, all of its tokens",
        "token 0 of every image",
        "The batch is the first axis, the tokens are the second.",
        "Look at the place of the index 0.",
        {"tokens[:, 0]": "tokens[0]"},
    ),
    Mistake(
        "probabilities",
        "softmax is applied",
        "logits, as they come from the head",
        "The text asks for logits; probabilities can be made of them, and not the other way round.",
        "Leave out the softmax.",
        {READ: READ + ".softmax(dim=-1)"},
    ),
    Mistake(
        "log_probabilities",
        "log_softmax is applied",
        "logits, as they come from the head",
        "The text asks for logits.",
        "Leave out the log_softmax.",
        {READ: READ + ".log_softmax(dim=-1)"},
    ),
    Mistake(
        "answers",
        "the classes are returned, not their logits",
        "(L, B, K) logits",
        "How sure the model is at each block would be lost.",
        "Leave out the argmax.",
        {READ: READ + ".argmax(dim=-1)"},
    ),
    Mistake(
        "last_block_only",
        "only the last block is read",
        "one answer after every block",
        "That is what the model answers anyway.",
        "Go through all layers.",
        {"in layers]": "in layers[-1:]]"},
    ),
    Mistake(
        "first_block_left_out",
        "the first block is left out",
        "one answer after every block",
        "Off by one.",
        "Look at where the loop starts.",
        {"in layers]": "in layers[1:]]"},
    ),
    Mistake(
        "reversed",
        "the last block comes first",
        "the first block first",
        "A curve over depth would run backwards.",
        "Keep the order of layers.",
        {"in layers]": "in reversed(layers)]"},
    ),
    Mistake(
        "batch_first",
        "the images come first",
        "(L, B, K): blocks first",
        "Whoever takes entry i wants block i.",
        "Look at the dim of stack.",
        {" for tokens in layers])": " for tokens in layers], dim=1)"},
    ),
    Mistake(
        "joined",
        "the blocks are joined along the batch",
        "(L, B, K), an axis for the blocks",
        "cat makes no new axis.",
        "Use stack.",
        {"torch.stack": "torch.cat"},
    ),
    Mistake(
        "added_up",
        "the blocks are added up",
        "the tokens after each block, as they are",
        "The residual path has added them already.",
        "Hand each layer over as it is.",
        {
            READ: "head(norm(sum(layers[: i + 1])[:, 0]))",
            "for tokens in layers": "for i in range(len(layers))",
        },
    ),
    Mistake(
        "norm_over_batch",
        "the tokens are normalised over the batch first",
        "the model's own norm alone",
        "The answer for one image would depend on the others.",
        "Use norm as it is.",
        {"norm(tokens[:, 0])": "norm((tokens[:, 0] - tokens[:, 0].mean(dim=0)))"},
    ),
    families.FIRST_OF_BATCH.by({"tokens[:, 0]": "tokens[:1, 0].expand_as(tokens[:, 0])"}),
)


def all_tokens_first(layers, norm, head):
    return torch.stack([head(norm(tokens))[:, 0] for tokens in layers], dim=0)


def all_at_once(layers, norm, head):
    return head(norm(torch.stack(list(layers))[:, :, 0, :]))


def by_hand(layers, norm, head):
    found = []
    for tokens in layers:
        first = tokens.select(1, 0)
        centred = first - first.mean(-1, keepdim=True)
        unit = centred / (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt()
        found.append(F.linear(unit * norm.weight + norm.bias, head.weight, head.bias))
    return torch.stack(found)


def by_images(layers, norm, head):
    rows = [torch.cat([head(norm(image[:1])) for image in tokens]) for tokens in layers]
    return torch.cat([row.unsqueeze(0) for row in rows])


def by_functions(layers, norm, head):
    firsts = torch.cat([tokens[:, :1] for tokens in layers], dim=1)  # (B, L, D)
    normed = F.layer_norm(firsts, firsts.shape[-1:], norm.weight, norm.bias, norm.eps)
    return F.linear(normed, head.weight, head.bias).transpose(0, 1)


CHECKER = Checker(
    "logit_lens",
    proves={
        "values": "the class token's logits after every block, through the model's own norm and head",
        "other sizes": "also for one block, one image, as many blocks as images, and float64",
    },
    special="len(layers) == 1; len(layers[0]) == 1",
)
