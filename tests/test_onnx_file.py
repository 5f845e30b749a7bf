"""vitedu.exporting.onnx_file: a model as ONNX computes what torch does, or is not written."""

import pytest
import torch

from vitedu.__main__ import main
from vitedu.exporting import onnx_file
from vitedu.exporting.onnx_file import NEEDED
from vitedu.pretrained.loading import load_pretrained


def test_what_is_missing_is_one_line(tmp_path, monkeypatch, capsys):
    """How to get it; nothing is written."""
    monkeypatch.setattr(onnx_file, "find_spec", lambda name: None)
    assert main(["export", str(tmp_path / "x.onnx"), "--onnx"]) == 2
    said = capsys.readouterr().err
    assert said == "vitedu: ONNX needs onnx, onnxscript, onnxruntime: pip install 'vitedu[onnx]'.\n"
    assert main(["export", "--checkpoint", "run"]) == 2 and not any(tmp_path.iterdir())


@pytest.mark.slow
def test_the_file_gives_the_same_logits_for_any_number_of_images(tmp_path, capsys, monkeypatch):
    """To 1e-5, run by onnxruntime; a file that is there stays, and one that differs is not kept."""
    runtime = [pytest.importorskip(name, reason="needs vitedu[onnx]") for name in NEEDED][-1]
    path, name = tmp_path / "x.onnx", "vit_pico_patch4_32.cifar10"
    words = ["export", str(path), "--onnx", "--pretrained", name]
    assert main(words) == 0 and "(B, 3, 32, 32)" in capsys.readouterr().out
    images = torch.randn(7, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"images": images.numpy()})
    with torch.no_grad():
        expected = load_pretrained(name)(images)
    torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-5, atol=1e-5)
    before = path.read_bytes()
    assert main(words) == 2 and "--force writes over it" in capsys.readouterr().err
    monkeypatch.setattr(onnx_file, "TOLERANCE", 0.0)
    assert main([*words, "--force"]) == 2 and "outputs differ by" in capsys.readouterr().err
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
