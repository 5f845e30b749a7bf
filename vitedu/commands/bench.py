"""``vitedu bench``: measure what the course promises, one sub-command a promise.

Role: their options. Not here: the measuring.
"""

from argparse import Namespace
from functools import partial
from pathlib import Path

from vitedu.commands import Commands


def add_commands(commands: Commands) -> None:
    """Describe the commands; nothing is imported for it."""
    parser = commands.add("bench", None, "measure what the course promises")
    bench = Commands(parser.add_subparsers(title="what", metavar="WHAT", required=True))

    new = bench.add("experiments", experiments, "what the notebooks quote but do not wait for")
    new.add_argument("name", nargs="?", help="the experiment; without a name they are listed")
    new.add_argument(
        "--profile", choices=("quick", "laptop", "gpu"), help="default: the hardware's"
    )
    new.add_argument("--only", nargs="+", default=[], help="parts of names of arms")
    lines = "a file that gets the lines it lacks (default: build/experiments/NAME.jsonl)"
    new.add_argument("--json", type=Path, help=lines)
    new.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="default: 0 1 2")

    new = bench.add("pretrain", pretrain, "train a shipped model that vitedu train does not know")
    new.add_argument("name", metavar="NAME", help="such as cnn_tiny_32")
    new.add_argument("--out", type=Path, required=True, help="its folder; a run in it goes on")
    new.add_argument("--epochs", type=int, help="default: as shipped")

    new = bench.add("ship", ship, "make a finished run on CIFAR-10 a model of the package")
    new.add_argument("folder", type=Path, metavar="RUN", help="the folder of the run")


def pretrain(args: Namespace) -> None:
    """Train a CNN, or an encoder without labels."""
    from vitedu.bench.pretraining import pretrain

    pretrain(args.name, args.out, epochs=args.epochs)


def ship(args: Namespace) -> None:
    """Round a run's weights, measure them, write them into the package."""
    from vitedu.bench.shipping import ship

    ship(args.folder)


def experiments(args: Namespace) -> None:
    """Run what is missing of an experiment, or list the experiments."""
    from dataclasses import replace

    from vitedu.bench.experiments import complete, data_of, find, names, table
    from vitedu.ground.hardware import current_profile

    if not args.name:
        for name in names():
            summary = (find(name).__doc__ or "").partition("\n\n")[0]
            print(f"{name:<20} {' '.join(summary.split())}")
        return
    profile = current_profile()
    profile = replace(profile, name=args.profile) if args.profile else profile
    module = find(args.name)
    run = partial(module.run, profile=profile)
    out = args.json or Path("build/experiments") / f"{args.name}.jsonl"
    chosen = {"data": data_of(args.name), "seeds": args.seeds, "only": args.only}
    rows = complete(args.name, out, run, {"profile": profile.name}, **chosen)
    print(f"lines in {out}\n{table(rows, module.ARMS)}")
