import re

import torch

from vitedu.checks.kit import Case, Checker, Mistake, StateDict, distinct, normal, plural


def cases(g: torch.Generator) -> list[Case]:
    """Draw the weights of small models with torchvision's names; no two sizes are the same."""

    def case(depth, part="values", dtype=torch.float32, note=""):
        D, P, C, K, T = distinct(g, 5, 2, 9)
        H = 4 * D
        shapes = {
            "class_token": (1, 1, D),
            "conv_proj.weight": (D, C, P, P),
            "conv_proj.bias": (D,),
            "encoder.pos_embedding": (1, T, D),
        }
        for i in range(depth):
            block = {
                "ln_1.weight": (D,),
                "ln_1.bias": (D,),
                "self_attention.in_proj_weight": (3 * D, D),
                "self_attention.in_proj_bias": (3 * D,),
                "self_attention.out_proj.weight": (D, D),
                "self_attention.out_proj.bias": (D,),
                "ln_2.weight": (D,),
                "ln_2.bias": (D,),
                "mlp.0.weight": (H, D),
                "mlp.0.bias": (H,),
                "mlp.3.weight": (D, H),
                "mlp.3.bias": (D,),
            }
            shapes |= {f"encoder.layers.encoder_layer_{i}.{n}": shape for n, shape in block.items()}
        shapes |= {
            "encoder.ln.weight": (D,),
            "encoder.ln.bias": (D,),
            "heads.head.weight": (K, D),
            "heads.head.bias": (K,),
        }
        tensors = {name: normal(g, *shape, dtype=dtype) for name, shape in shapes.items()}
        name = f"a state_dict of {plural(depth, 'block')}, {len(tensors)} tensors{note}"
        return Case(name, {"state_dict": StateDict(**tensors)}, part, driver="renamed")

    return [
        case(3),
        case(1, "other sizes"),
        case(25, "other sizes", note=", one more than vit_l_16"),
        case(2, "other sizes", torch.float64, ", float64"),
    ]


KEEP = "converted[name] = tensor"
EXPECT = "for i in range(12):\n    state_dict[f'encoder.layers.encoder_layer_{i}.ln_1.weight']\n"
CUT = "return {{n: x for n, x in converted.items() if not n.startswith('blocks.') or int(n.split('.')[1]) < {}}}"
MISTAKES = (
    Mistake(
        "two_norms_swapped",
        "the two norms of a block are exchanged",
        "ln_1 is norm1, ln_2 is norm2",
        "Both have the same shape, so nothing complains.",
        "Look at the two lines.",
        {'"norm1"': '"norm2"', '"norm2"': '"norm1"'},
    ),
    Mistake(
        "mlp_transposed",
        "the matrices are transposed",
        "the same numbers under other names",
        "Both libraries keep (out, in).",
        "Leave the tensors as they are.",
        {KEEP: "converted[name] = tensor.T.contiguous() if tensor.ndim == 2 else tensor"},
    ),
    Mistake(
        "qkv_transposed",
        "the matrix of q, k and v is transposed and folded back",
        "the same numbers under another name",
        "The shape is right and every number stands elsewhere.",
        "Leave the tensor as it is.",
        {
            KEEP: 'converted[name] = tensor.T.reshape(tensor.shape) if "qkv.weight" in name else tensor'
        },
    ),
    Mistake(
        "thirds_reordered",
        "the thirds of qkv have another order",
        "q, k, v in both libraries",
        "Queries would be read as something else.",
        "Leave the tensor as it is.",
        {KEEP: 'converted[name] = tensor.roll(len(tensor) // 3, 0) if "qkv" in name else tensor'},
        also=(
            {
                KEEP: 'converted[name] = tensor.roll(-(len(tensor) // 3), 0) if "qkv" in name else tensor'
            },
            {
                KEEP: 'converted[name] = torch.cat(tensor.chunk(3)[::-1]) if "qkv" in name else tensor'
            },
        ),
    ),
    Mistake(
        "class_token_kept",
        "the class token keeps torchvision's name",
        "cls_token",
        "The model would keep a fresh one.",
        "Look at the names without a dot.",
        {'"class_token": "cls_token",': ""},
    ),
    Mistake(
        "head_left_out",
        "the head is left out",
        "every tensor of the model",
        "The model would answer with a random head.",
        "heads.head is our head.",
        {KEEP: 'if not name.startswith("head"):\n    converted[name] = tensor'},
    ),
    Mistake(
        "biases_left_out",
        "the biases are left out",
        "every tensor of the model",
        "Each layer has both.",
        "Go through all names.",
        {KEEP: 'if not name.endswith("bias"):\n    converted[name] = tensor'},
    ),
    Mistake(
        "tokens_left_out",
        "class token and positions are left out",
        "every tensor of the model",
        "They were learned, too.",
        "Go through all names.",
        {KEEP: 'if name not in ("cls_token", "pos_embed"):\n    converted[name] = tensor'},
    ),
    Mistake(
        "norm_left_out",
        "the final norm is left out",
        "every tensor of the model",
        "It stands between the blocks and the head.",
        "encoder.ln is our norm.",
        {KEEP: 'if not name.startswith("norm."):\n    converted[name] = tensor'},
    ),
    Mistake(
        "final_norm_name",
        "the final norm keeps torchvision's name",
        "norm.weight and norm.bias",
        "load_state_dict would miss it.",
        "encoder.ln is our norm.",
        {'"encoder.ln": "norm",': ""},
    ),
    Mistake(
        "head_name",
        "the head keeps torchvision's name",
        "head.weight and head.bias",
        "load_state_dict would miss it.",
        "heads.head is our head.",
        {'"heads.head": "head",': ""},
        also=({'"heads.head": "head",': '"heads.head": "heads",'},),
    ),
    Mistake(
        "in_proj_dot",
        "the underscore of in_proj_weight is kept",
        "blocks.i.attn.qkv.weight",
        "torch keeps these two as parameters, not as a layer.",
        "Replace the underscore as well.",
        {'in_proj_": "attn.qkv."': 'in_proj_": "attn.qkv_"'},
    ),
    Mistake(
        "old_names_kept",
        "torchvision's names are there as well",
        "our names alone",
        "load_state_dict refuses what it does not know.",
        "Make a new dict.",
        {"converted = {}": "converted = dict(state_dict)"},
    ),
    Mistake(
        "blocks_from_one",
        "the blocks are counted from 1",
        "blocks.0 for encoder_layer_0",
        "Every block would stand one too high.",
        "Keep the number.",
        {
            KEEP: 'part, *rest = name.split(".")\nname = ".".join(["blocks", str(int(rest[0]) + 1), *rest[1:]]) if part == "blocks" else name\n'
            + KEEP
        },
    ),
    Mistake(
        "blocks_sorted_as_words",
        "the blocks are numbered in the order of words",
        "block i for encoder_layer_i",
        "As words, 10 comes before 2; it goes unnoticed up to ten blocks.",
        "Take the number out of the name.",
        part="other sizes",
        build=lambda: _sorted_as_words,
    ),
    Mistake(
        "first_block_everywhere",
        "every block gets the weights of the first",
        "block i for encoder_layer_i",
        "The blocks learned different things.",
        "Look at the number.",
        {
            KEEP: "converted[name] = state_dict[re.sub(r'layer_[0-9]+', 'layer_0', theirs_whole)]",
            "for theirs, ours": "theirs_whole = name\nimport re\nfor theirs, ours",
        },
    ),
    Mistake(
        "one_digit",
        "only the first digit of a block's number is read",
        "block 10 is not block 1",
        "It goes unnoticed up to ten blocks.",
        "Read the number up to the dot.",
        part="other sizes",
        build=lambda: _one_digit,
    ),
    Mistake(
        "number_expected",
        "a fixed number of blocks is expected",
        "as many blocks as there are",
        "Models have 12, 24 or 32 blocks.",
        "Go through the names that come.",
        {"return converted": EXPECT + "return converted"},
        also=(
            {"return converted": EXPECT + CUT.format(12)},
            {"return converted": EXPECT + CUT.format(24)},
        ),
    ),
    Mistake(
        "cut_short",
        "blocks of deeper models are left out",
        "as many blocks as there are",
        "Models have 12, 24 or 32 blocks.",
        "Go through the names that come.",
        {"return converted": CUT.format(12)},
        also=({"return converted": CUT.format(24)},),
        part="other sizes",
    ),
    Mistake(
        "half_precision",
        "the tensors change their dtype",
        "the tensors as they are",
        "Numbers are rounded.",
        "Leave out .half() and .float().",
        {KEEP: "converted[name] = tensor.half()"},
        also=({KEEP: "converted[name] = tensor.double()"},),
    ),
)


def _sorted_as_words(state_dict):
    blocks = sorted({n.split(".")[2] for n in state_dict if "encoder_layer_" in n})
    renamed = {}
    for name, tensor in state_dict.items():
        parts = name.split(".")
        if "encoder_layer_" in name:
            parts[2] = f"encoder_layer_{blocks.index(parts[2])}"
        renamed[".".join(parts)] = tensor
    return by_pattern(renamed)


def _one_digit(state_dict):
    found = by_pattern(state_dict)
    return {re.sub(r"blocks\.(\d)\d+", r"blocks.\1", name): x for name, x in found.items()}


def by_pattern(state_dict):
    found = {}
    for name, tensor in state_dict.items():
        name = re.sub(r"^encoder\.layers\.encoder_layer_(\d+)\.", r"blocks.\1.", name)
        name = re.sub(r"\bln_(\d)", r"norm\1", name).replace("self_attention.", "attn.")
        name = name.replace("in_proj_", "qkv.").replace("out_proj", "proj")
        name = name.replace("mlp.0", "mlp.fc1").replace("mlp.3", "mlp.fc2")
        name = re.sub(r"^class_token$", "cls_token", name).replace("conv_proj", "patch_embed.proj")
        name = name.replace("encoder.pos_embedding", "pos_embed").replace("encoder.ln.", "norm.")
        found[name.replace("heads.head.", "head.")] = tensor
    return found


def by_hand(state_dict):
    found = {"cls_token": state_dict["class_token"]}
    found["pos_embed"] = state_dict["encoder.pos_embedding"]
    pairs = {"patch_embed.proj": "conv_proj", "norm": "encoder.ln", "head": "heads.head"}
    depth = sum(name.endswith("ln_1.bias") for name in state_dict)
    for i in range(depth):
        ours, theirs = f"blocks.{i}.", f"encoder.layers.encoder_layer_{i}."
        pairs |= {f"{ours}norm{n}": f"{theirs}ln_{n}" for n in (1, 2)}
        pairs |= {ours + "mlp.fc1": theirs + "mlp.0", ours + "mlp.fc2": theirs + "mlp.3"}
        pairs[ours + "attn.proj"] = theirs + "self_attention.out_proj"
        for kind in ("weight", "bias"):
            in_proj = state_dict[f"{theirs}self_attention.in_proj_{kind}"]
            found[f"{ours}attn.qkv.{kind}"] = in_proj.clone()
    for ours, theirs in pairs.items():
        for kind in ("bias", "weight"):
            found[f"{ours}.{kind}"] = state_dict[f"{theirs}.{kind}"].detach().clone()
    return found


def by_parts(state_dict):
    last = {"ln_1": "norm1", "ln_2": "norm2", "self_attention": "attn", "0": "fc1", "3": "fc2"}
    last |= {"in_proj_weight": "qkv.weight", "in_proj_bias": "qkv.bias", "out_proj": "proj"}

    def rename(name):
        match name.split("."):
            case ["encoder", "layers", layer, *rest]:
                words = [last.get(word, word) for word in rest]
                return ".".join(["blocks", layer.rpartition("_")[2], *words])
            case ["encoder", "ln", kind]:
                return f"norm.{kind}"
            case ["heads", "head", kind]:
                return f"head.{kind}"
            case ["conv_proj", kind]:
                return f"patch_embed.proj.{kind}"
        return "cls_token" if name == "class_token" else "pos_embed"

    return dict(zip(map(rename, state_dict), state_dict.values(), strict=True))


def by_table(state_dict):
    table = (
        ("encoder.layers.encoder_layer_", "blocks."),
        (".self_attention.in_proj_", ".attn.qkv."),
        (".self_attention.out_proj", ".attn.proj"),
        (".ln_", ".norm"),
        ("encoder.ln", "norm"),
        ("mlp.0", "mlp.fc1"),
        ("mlp.3", "mlp.fc2"),
        ("heads.head", "head"),
        ("class_token", "cls_token"),
        ("encoder.pos_embedding", "pos_embed"),
        ("conv_proj", "patch_embed.proj"),
    )
    found = {}
    for name in sorted(state_dict):
        ours = name
        for old, new in table:
            ours = ours.replace(old, new)
        found[ours] = state_dict[name]
    return found


CHECKER = Checker(
    "convert_torchvision_weights",
    proves={
        "values": "every tensor stands under its name in the course's model, with its own numbers",
        "other sizes": "also for one block, 25 blocks, and float64",
    },
    special="sum('ln_1.bias' in n for n in state_dict) == 1; "
    "sum('ln_1.bias' in n for n in state_dict) > 12; "
    "sum('ln_1.bias' in n for n in state_dict) > 24",
)
