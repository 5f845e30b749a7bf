"""Commands that train a model and use it.

Role: their options. Not here: the runs (``vitedu.fitting.runs``), models read again
(``vitedu.fitting.saved_run``).
"""

from argparse import ArgumentTypeError, Namespace
from pathlib import Path

from vitedu.commands import Commands, add_device, add_flag, add_model


def add_commands(commands: Commands) -> None:
    """Describe the commands; nothing is imported for it."""
    new = commands.add("train", train_model, "train a preset and write the run to a folder")
    new.add_argument(
        "--data", help="cifar10, cifar10-original, shapes or a folder (default: cifar10)"
    )
    new.add_argument("--preset", help="which model (default: vit_micro_patch8_32)")
    add_model(new, "a my_vit.py in place of a preset: its model, trained by its own loop")
    text = "in place of a preset: weights to start from; a ViT of list --models, vit_b_16, or a run"
    new.add_argument("--pretrained", metavar="NAME", help=text)
    new.add_argument("--weights", metavar="FILE", help="with --pretrained: a file, no download")
    add_flag(new, "--example", "draw a folder of three kinds, drawings/, and learn it from weights")
    text = "pixels of a side (default: the preset's or the weights')"
    new.add_argument("--image-size", type=square, metavar="S", help=text)
    text = "leave the embedding and the first N blocks as they are"
    new.add_argument("--freeze", type=int, metavar="N", help=text)
    text = "each block learns at D times the rate of the one above it, such as 0.75"
    new.add_argument("--layer-decay", type=float, metavar="D", help=text)
    new.add_argument("--epochs", type=int, help="default: as the preset's recipe says")
    new.add_argument("--lr", type=float, help="peak learning rate (default: the recipe's)")
    new.add_argument("--seed", type=int, help="default: 0")
    new.add_argument("--limit", type=int, help="train on so many images only")
    new.add_argument(
        "--set",
        action="extend",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="any field of TrainConfig or ViTConfigWithOptions, but not of the data: batch_size=64 "
        "or rope=true; one or several; a name that does not exist lists all",
    )
    new.add_argument("--out", type=Path, help="folder of the run (default: runs/PRESET-DATA-seedN)")
    add_flag(new, "--resume", "go on with the unfinished run in that folder")
    add_device(new)
    new = commands.add("eval", eval_model, "measure a trained model on validation and test images")
    new.add_argument("--checkpoint", type=Path, required=True, help="the folder of a run")
    new.add_argument("--data", help="default: what the model was trained on")
    add_model(new, "the my_vit.py that the run trained, or one whose weights fit")
    add_device(new)
    new = commands.add("race", race_file, "train a file of your own within a budget of products")
    new.add_argument("path", type=Path, help="the file; with --table a folder of lines")
    add_flag(new, "--table", "show the best line of everybody")
    new.add_argument("--budget", type=float, help="multiply-accumulates (default: 6.5e12)")
    new.add_argument("--name", help="whose file it is (default: the login)")
    new.add_argument("--out", type=Path, help="default: race.jsonl beside the file")
    new = commands.add("predict", predict_images, "name the most probable classes of images")
    model = new.add_mutually_exclusive_group()
    model.add_argument("--checkpoint", type=Path, help="the folder of a run")
    model.add_argument("--pretrained", metavar="NAME", help="of list --models, or vit_b_16, ...")
    new.add_argument(
        "--weights", type=Path, help="with --pretrained: a file with them, no download"
    )
    new.add_argument("images", type=Path, nargs="+", help="image files")
    add_model(new, "with --checkpoint: the my_vit.py that the run trained")
    new.add_argument("--top", type=int, default=3, help="classes to name (default: %(default)s)")
    add_device(new)


def square(text: str) -> int:
    """Read the side of a square image."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"images are squares: one number, such as 64 (got {text})")
    return int(text)


def train_model(args: Namespace) -> int:
    """Train; status 1 if the loss broke, 130 if interrupted."""
    from vitedu.fitting.runs import DEFAULT_DATA, DEFAULT_PRESET, WORDS, main_train

    if args.example:
        from vitedu.data.drawings import draw_folder

        if args.data:
            raise ValueError("--example draws what --data would name: give one of them.")
        args.data = str(draw_folder(Path("drawings")))
        if not (args.preset or args.model):
            args.pretrained = args.pretrained or "vit_tiny_patch4_32.cifar10"
    names = "epochs lr freeze layer_decay seed device".split()
    values = {name: str(getattr(args, name)) for name in names}
    settings = [f"{name}={text}" for name, text in values.items() if text not in ("None", "auto")]
    start = args.model or args.preset or args.pretrained or DEFAULT_PRESET
    what = f"{Path(start).name.removesuffix('.py')}-{Path(args.data or DEFAULT_DATA).name}"
    seed = dict(pair.split("=", 1) for pair in [*settings, *args.set] if pair.startswith("seed="))
    args.out = args.out or Path("runs", f"{what}-seed{seed.get('seed', 0)}")
    words = {name: getattr(args, name) for name in WORDS}
    options = {"resume": args.resume, "model_path": args.model}
    return main_train(args.out, words, settings + args.set, **options)


def eval_model(args: Namespace) -> int:
    """Print validation and test accuracy."""
    from vitedu.fitting.saved_run import main_eval

    options = {"data": args.data, "device": args.device, "model_path": args.model}
    return main_eval(checkpoint=args.checkpoint, **options)


def race_file(args: Namespace) -> None:
    """Run the race, or show its table."""
    from vitedu.exporting.race import race, race_table

    if args.table:
        print(race_table(args.path))
        return
    line = race(args.path, budget=args.budget, name=args.name, out=args.out)
    print(f"{line['accuracy']:.1%} of 10,000 test photographs, {line['macs'] / 1e12:.2f}e12 MACs")


def predict_images(args: Namespace) -> int:
    """Print the most probable classes of each image."""
    from vitedu.fitting.saved_run import main_predict

    if args.weights and not args.pretrained:
        raise ValueError("--weights goes with --pretrained; a run's folder holds its own.")
    if args.model and not args.checkpoint:
        raise ValueError("--model goes with --checkpoint, whose weights it takes.")
    options = {name: getattr(args, name) for name in "checkpoint pretrained weights top".split()}
    return main_predict(args.images, device=args.device, model_path=args.model, **options)
