"""``vitedu bench``: measure what the course promises, one sub-command a promise.

Role: their options, and the exit status: 1 if an aim is not met. Not here: the measuring.
"""

from pathlib import Path

from vitedu.commands import Commands, add_device, add_precision


def add_commands(commands: Commands) -> None:
    """Describe the commands; nothing is imported for it."""
    parser = commands.add("bench", None, "measure what the course promises")
    bench = Commands(parser.add_subparsers(title="what", metavar="WHAT", required=True))

    new = bench.add("laptop", laptop, "the training run of notebook 04")
    new.add_argument(
        "--busy", action="store_true", help="two epochs alone and beside one busy process instead"
    )
    add_seeds(new)
    add_device(new)
    add_precision(new)

    new = bench.add("train", train, "our training step beside other libraries'")
    new.add_argument("--presets", nargs="+", help="which models (default: the course's)")
    new.add_argument("--compile", action="store_true", help="torch.compile as well")
    new.add_argument("--no-memory", action="store_true", help="leave out peak memory")
    new.add_argument(
        "--profile",
        action="store_true",
        help="instead: where a step of fit spends its time, on the CPU (--rounds: how many steps)",
    )
    add_timing(new, batch=128)
    add_precision(new, several=True)

    new = bench.add("data", data, "our augmented batches beside a DataLoader's")
    add_timing(new, batch=128)

    new = bench.add("cost", cost, "time and FLOP against patch, width, depth and tokens")
    new.add_argument(
        "--out", type=Path, default=Path("build/cost.png"), help="default: %(default)s"
    )
    add_timing(new, batch=32)
    add_precision(new)

    new = bench.add("ablations", ablations, "what each change to model and recipe is worth")
    new.add_argument("--data", default="cifar10", help="as in train (default: %(default)s)")
    new.add_argument("--epochs", type=int, default=3, help="of each run (default: %(default)s)")
    add_only(new)
    new.add_argument(
        "--json",
        type=Path,
        default=Path("build/ablations.jsonl"),
        help="a file that gets the rows it lacks, one by one (default: %(default)s)",
    )
    add_seeds(new)
    add_device(new)

    new = bench.add("experiments", experiments, "what the notebooks quote but do not wait for")
    new.add_argument("name", nargs="?", help="the experiment; without a name they are listed")
    new.add_argument(
        "--profile", choices=("quick", "laptop", "gpu"), help="default: the hardware's"
    )
    add_only(new)
    new.add_argument(
        "--json",
        type=Path,
        help="a file that gets the lines it lacks, one by one (default: "
        "build/experiments/NAME.jsonl)",
    )
    add_seeds(new)


def add_only(parser) -> None:
    """Add the choice of arms."""
    parser.add_argument("--only", nargs="+", default=[], help="parts of names of arms")


def add_seeds(parser) -> None:
    """Add the option of several runs."""
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="default: 0 1 2")


def add_json(parser) -> None:
    """Add the option of a file for what was measured."""
    parser.add_argument("--json", type=Path, help="a file for all figures")


def add_timing(parser, *, batch: int) -> None:
    """Add what all timings in turn need."""
    parser.add_argument("--batch", type=int, default=batch, help="images (default: %(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=7, help="of all in turn (default: %(default)s)"
    )
    add_device(parser)
    add_json(parser)


def laptop(args) -> int:
    """Train the laptop's model; status 1 if it learns too little, or a neighbour slows it."""
    from vitedu.bench.laptop import bench_busy, bench_laptop

    if args.busy:
        return 0 if bench_busy(args.seeds) else 1
    return 0 if bench_laptop(args.seeds, args.device, args.precision) else 1


def train(args) -> int:
    """Time training steps; status 1 if an aim is not met."""
    from vitedu.bench.shares import bench_shares
    from vitedu.bench.train import bench_train

    device = chosen_device(args)
    if args.profile and device.type != "cpu":
        raise ValueError(f"--profile watches a CPU (got {device}); add --device cpu.")
    precisions = [chosen_precision(name, device) for name in args.precision]
    if args.profile:
        presets = args.presets or ["vit_tiny_patch4_rope_32"]
        bench_shares(
            precisions,
            presets,
            batch=args.batch,
            steps=args.rounds,
            compiled=args.compile,
            json=args.json,
        )
        return 0
    is_met = bench_train(
        device,
        precisions,
        args.presets,
        batch=args.batch,
        rounds=args.rounds,
        compiled=args.compile,
        memory=not args.no_memory,
        json=args.json,
    )
    return 0 if is_met else 1


def data(args) -> int:
    """Time batches."""
    from vitedu.bench.data import bench_data

    bench_data(chosen_device(args), batch=args.batch, rounds=args.rounds, json=args.json)
    return 0


def cost(args) -> int:
    """Time sizes and draw them."""
    from vitedu.bench.cost import bench_cost

    device = chosen_device(args)
    bench_cost(
        device,
        chosen_precision(args.precision, device),
        args.out,
        batch=args.batch,
        rounds=args.rounds,
        json=args.json,
    )
    return 0


def ablations(args) -> int:
    """Train what is missing of the list of changes and print the table."""
    from vitedu.bench.experiments.ablations import bench_ablations
    from vitedu.fitting.runs import load
    from vitedu.hardware import check_device

    check_device(args.device)
    options = {"epochs": args.epochs, "seeds": args.seeds, "only": args.only}
    bench_ablations(load(args.data), args.json, device=args.device, **options)
    print(f"rows in {args.json}")
    return 0


def experiments(args) -> int:
    """Run what is missing of an experiment, or list the experiments."""
    from dataclasses import replace

    from vitedu.bench.experiments import find, names, run_experiment
    from vitedu.hardware import current_profile

    if not args.name:
        for name in names():
            summary = (find(name).__doc__ or "").partition("\n\n")[0]
            print(f"{name:<20} {' '.join(summary.split())}")
        return 0
    profile = current_profile()
    profile = replace(profile, name=args.profile) if args.profile else profile
    out = args.json or Path("build/experiments") / f"{args.name}.jsonl"
    run_experiment(args.name, out, profile=profile, seeds=args.seeds, only=args.only)
    print(f"lines in {out}")
    return 0


def chosen_device(args):
    """Return the torch device that was asked for."""
    import torch

    from vitedu.hardware import check_device, pick_device

    check_device(args.device)
    return pick_device() if args.device == "auto" else torch.device(args.device)


def chosen_precision(name: str, device) -> str:
    """Return the name of a torch type; float16 is refused."""
    from vitedu.hardware import pick_precision

    if name == "float16":
        raise ValueError(
            "float16 needs a gradient scaler, which these steps leave out; use float32."
        )
    return str(pick_precision(device)).removeprefix("torch.") if name == "auto" else name
