"""Right answers to 9.4 convert_torchvision_weights, and what becomes of its mutants."""

import re


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


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "sum('ln_1.bias' in n for n in state_dict) == 1",
    "sum('ln_1.bias' in n for n in state_dict) > 12",
    "sum('ln_1.bias' in n for n in state_dict) > 24",
)
