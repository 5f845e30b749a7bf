"""vitedu.ground.hardware: device, precision and profile, on machines that are pretended."""

import platform

import pytest
import torch

from vitedu.ground import hardware
from vitedu.ground.hardware import COSTS, current_profile, pick_device, pick_precision


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")],
    ids=["cuda-first", "then-mps", "else-cpu"],
)
def test_pick_device_prefers_cuda_then_mps(monkeypatch, cuda, mps, expected):
    """CUDA wins over MPS, MPS over the CPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert pick_device() == torch.device(expected)


@pytest.mark.parametrize(
    ("capability", "expected"), [((7, 5), torch.float16), ((8, 0), torch.bfloat16)]
)
def test_pick_precision_never_emulates_bfloat16(monkeypatch, capability, expected):
    """A T4 gets float16 although torch says that it can emulate bfloat16."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *args, **kwargs: True)
    assert pick_precision(torch.device("cuda")) == expected


@pytest.mark.parametrize("flags", ["avx2", "avx512f avx512_bf16", "amx_tile amx_bf16", ""])
def test_pick_precision_reads_the_flags_of_the_cpu(monkeypatch, flags):
    """A CPU computes in bfloat16 only where it multiplies it natively."""
    monkeypatch.setattr(hardware, "cpu_flags", lambda: frozenset(flags.split()))
    assert pick_precision("cpu") == (torch.bfloat16 if "bf16" in flags else torch.float32)


def test_cpu_flags_reads_linux_and_survives_its_absence(monkeypatch, tmp_path):
    """The flags come from the first processor; without the file the set is empty."""
    info = tmp_path / "cpuinfo"
    monkeypatch.setattr(hardware, "Path", lambda name: info)
    assert hardware.cpu_flags() == frozenset()
    info.write_text("processor : 0\nflags\t\t: fpu avx512_bf16\n\nflags\t\t: other\n")
    assert hardware.cpu_flags() == {"fpu", "avx512_bf16"}
    info.write_text("processor : 0\nFeatures : fp asimd\n")
    assert hardware.cpu_flags() == frozenset()


@pytest.mark.parametrize("name", COSTS)
def test_current_profile_obeys_the_environment(monkeypatch, name):
    """VITEDU_PROFILE wins; the text has two lines, the choice with its reason, and the cost."""
    monkeypatch.setenv("VITEDU_PROFILE", name)
    profile = current_profile()
    assert profile.pick(quick="quick", laptop="laptop", gpu="gpu") == name
    first, second = str(profile).splitlines()
    assert name in first and "VITEDU_PROFILE" in first and second == COSTS[name]


@pytest.mark.parametrize(("cuda", "expected"), [(True, "gpu"), (False, "laptop")])
def test_current_profile_follows_the_hardware(monkeypatch, cuda, expected):
    """Without an order the profile is gpu with CUDA and laptop without."""
    monkeypatch.delenv("VITEDU_PROFILE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a card")
    assert current_profile().name == expected


def test_current_profile_lists_the_choices(monkeypatch):
    """An unknown profile is named, and so are the three there are."""
    monkeypatch.setenv("VITEDU_PROFILE", "desktop")
    with pytest.raises(ValueError, match="'desktop' names no profile. Choices: quick, laptop, gpu"):
        current_profile()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's allocator alone is told")
def test_freed_memory_is_taken_again_without_new_pages():
    """Ten tensors of 40 MB, each freed before the next: soon they lie where another one lay."""
    import resource

    def new_pages():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.zeros(10_000_000)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    hardware.keep_freed_memory()
    assert min(new_pages() for _ in range(10)) < 40_000_000 / resource.getpagesize() / 10
