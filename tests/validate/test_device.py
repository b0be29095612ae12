"""The GPU found, judged and refused, with torch and nvidia-smi played by fakes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from mla_calc.errors import InputError
from mla_calc.hardware.gpu import GPU
from mla_calc.hardware.load import load_gpu
from mla_calc.validate import device, nvidia_smi
from mla_calc.validate.device import Opened, open_device
from mla_calc.validate.nvidia_smi import telemetry
from mla_calc.validate.record import Telemetry

UUID = "0f5a4c1e-1111-2222-3333-444455556666"
H200_NAME = "NVIDIA H200"


def fake_torch(**changes: Any) -> Any:
    """torch as it looks on an H200; ``changes`` by the names below."""
    facts = {
        "name": H200_NAME,
        "capability": (9, 0),
        "sms": 132,
        "cuda": "13.0",
        "hip": None,
        "available": True,
        "init_error": None,
        "initialized": False,
        **changes,
    }
    properties = SimpleNamespace(
        name=facts["name"],
        major=facts["capability"][0],
        minor=facts["capability"][1],
        multi_processor_count=facts["sms"],
        total_memory=150_109_880_320,
        L2_cache_size=62_914_560,
        shared_memory_per_block_optin=232_448,
        uuid=UUID,
    )

    def init() -> None:
        if facts["init_error"]:
            raise facts["init_error"]

    cuda = SimpleNamespace(
        is_available=lambda: facts["available"],
        is_initialized=lambda: facts["initialized"],
        device_count=lambda: int(facts["available"]),
        current_device=lambda: 0,
        get_device_properties=lambda _: properties,
        mem_get_info=lambda: (149_000_000_000, 150_109_880_320),
        init=init,
    )
    version = SimpleNamespace(cuda=facts["cuda"], hip=facts["hip"])
    return SimpleNamespace(__version__="2.11.0+cu130", version=version, cuda=cuda)


def modules(torch: Any = None, **others: Any) -> Callable[[str], Any]:
    measuring = {device.MEASURING: SimpleNamespace()}
    found = {"torch": torch or fake_torch(), "triton": SimpleNamespace(__version__="3.6.0"), **measuring, **others}

    def find(name: str) -> Any:
        if isinstance(found[name], Exception):
            raise found[name]
        return found[name]

    return find


class FakeSmi:
    """nvidia-smi with one GPU, or a second one beside it that is busy."""

    def __init__(
        self, *, used: str = "4", percent: Sequence[str] = ("0",), mig: str = "Disabled", apps: str = ""
    ) -> None:
        self.used, self.percent, self.mig, self.apps = used, list(percent), mig, apps
        self.asked: list[list[str]] = []

    def __call__(self, arguments: Sequence[str]) -> str | None:
        self.asked.append(list(arguments))
        query = arguments[0]
        if query.startswith("--query-compute-apps"):
            return self.apps
        if query == "--query-gpu=driver_version":
            return "580.159.04\n"
        if query.startswith("--query-gpu=uuid"):
            percent = self.percent.pop(0) if len(self.percent) > 1 else self.percent[0]
            mine = f"GPU-{UUID}, 580.159.04, {self.mig}, {self.used}, {percent}\n"
            return mine + "GPU-other, 580.159.04, Disabled, 4, 0\n"
        if query.startswith("--query-gpu=clocks.sm"):
            return "1980, 3201, 512.33, 54\n"
        raise AssertionError(arguments)


@pytest.fixture
def h200() -> GPU:
    return load_gpu("h200")


def opened(gpu: GPU, torch: Any = None, smi: Any = None, *, force: bool = False, **others: Any) -> Opened:
    return open_device(gpu, force=force, smi=smi or FakeSmi(), find=modules(torch, **others), sleep=lambda _: None)


def refusal(gpu: GPU, torch: Any = None, smi: Any = None, *, force: bool = False, **others: Any) -> str:
    """The error's lines: one, or two with the hint."""
    with pytest.raises(InputError) as caught:
        opened(gpu, torch, smi, force=force, **others)
    text = str(caught.value)
    assert "\n" not in text
    assert "\n" not in (caught.value.hint or "")
    return text


def test_an_h200_is_opened_and_described(h200: GPU) -> None:
    found = opened(h200)
    machine = found.machine
    assert (machine.gpu, machine.device_name) == ("NVIDIA H200 SXM 141GB", "NVIDIA H200")
    assert (machine.compute_capability, machine.sms, machine.l2_bytes) == ("9.0", 132, 60 * 2**20)
    assert (machine.driver, machine.cuda, machine.torch, machine.triton) == (
        "580.159.04",
        "13.0",
        "2.11.0+cu130",
        "3.6.0",
    )
    assert machine.forced is False
    assert (found.device.sms, found.device.capability, found.device.shared_bytes) == (132, (9, 0), 232_448)
    assert (found.free_bytes, found.uuid, found.notes) == (149_000_000_000, f"GPU-{UUID}", ())


def test_nothing_but_queries_is_asked_of_nvidia_smi(h200: GPU) -> None:
    # clocks, power and MIG mode are never set
    smi = FakeSmi()
    opened(h200, smi=smi).telemetry()
    allowed = ("--query-gpu=", "--query-compute-apps=", "--format=csv,noheader,nounits", "--id=GPU-")
    assert len(smi.asked) >= 4
    assert all(argument.startswith(allowed) for asked in smi.asked for argument in asked)


@pytest.mark.parametrize("name", ["torch", "triton"])
def test_a_missing_module_is_named(h200: GPU, name: str) -> None:
    def find(wanted: str) -> Any:
        if wanted == name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return modules()(wanted)

    with pytest.raises(InputError) as caught:
        open_device(h200, force=True, smi=FakeSmi(), find=find)
    assert str(caught.value) == f"validate measures with {name}, which is not installed"
    assert "mla-calc[gpu]" in (caught.value.hint or "")


def test_a_module_that_does_not_load_says_why(h200: GPU) -> None:
    broken = ImportError("libcudart.so.13: cannot open shared object file\nmore")
    text = refusal(h200, triton=broken)
    assert "triton, which cannot be imported" in text
    assert "libcudart.so.13" in text


@pytest.mark.parametrize(
    "fault",
    [
        ModuleNotFoundError("No module named 'triton.experimental.gluon'"),
        ImportError("cannot import name 'fence_async_shared' from 'triton.experimental.gluon.language.nvidia.hopper'"),
        AttributeError("module 'triton.language.core' has no attribute '_aggregate'\nmore"),
        TypeError("jit() got an unexpected keyword argument 'do_not_specialize'"),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_a_triton_that_the_kernels_are_not_written_for(h200: GPU, fault: Exception) -> None:
    text = refusal(h200, force=True, **{device.MEASURING: fault})
    assert text.startswith("the kernels do not load with Triton '3.6.0' and torch '2.11.0+cu130': ")
    assert f"{type(fault).__name__}: {str(fault)[:60].splitlines()[0]}" in text


def test_what_is_loaded_is_what_a_run_measures_with() -> None:
    import importlib

    from mla_calc.validate import kernels

    measuring = importlib.import_module(device.MEASURING)
    assert measuring.absorbed_decode is kernels.absorbed_decode
    assert measuring.CudaBench


def test_a_torch_without_cuda(h200: GPU) -> None:
    assert "built without CUDA" in refusal(h200, fake_torch(cuda=None, available=False), lambda _: None)


def test_a_torch_for_amd(h200: GPU) -> None:
    assert "AMD" in refusal(h200, fake_torch(cuda=None, hip="6.4"))


def test_no_gpu_at_all(h200: GPU) -> None:
    torch = fake_torch(available=False, init_error=RuntimeError("Found no NVIDIA driver on your system."))
    assert refusal(h200, torch, lambda _: None) == "no NVIDIA GPU is visible here"


def test_every_gpu_hidden(h200: GPU, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    torch = fake_torch(available=False, init_error=RuntimeError("No CUDA GPUs are available"))
    assert "CUDA_VISIBLE_DEVICES hides" in refusal(h200, torch)


def test_a_driver_too_old_is_named_with_its_version(h200: GPU, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    error = RuntimeError("The NVIDIA driver on your system is too old (found version 12080). Please update\nmore")
    text = refusal(h200, fake_torch(available=False, init_error=error))
    assert text == "the NVIDIA driver 580.159.04 is too old for torch 2.11.0+cu130 (CUDA 13.0)"


def test_another_reason_of_the_driver_is_quoted(h200: GPU, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    error = RuntimeError("CUDA unknown error - this may be due to an incorrectly set up environment\nmore")
    text = refusal(h200, fake_torch(available=False, init_error=error))
    assert "driver 580.159.04" in text
    assert "CUDA unknown error" in text


def test_a_warning_of_torch_is_not_shown(h200: GPU, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    torch = fake_torch(available=False, init_error=RuntimeError("too old"))

    def is_available() -> bool:
        warnings.warn("The NVIDIA driver is too old", UserWarning, stacklevel=1)
        return False

    torch.cuda.is_available = is_available
    assert "too old" in refusal(h200, torch)  # warnings are errors here


def test_a_gpu_before_ampere(h200: GPU) -> None:
    text = refusal(h200, fake_torch(name="Tesla V100-SXM2-16GB", capability=(7, 0)), force=True)
    assert "7.0" in text
    assert "8.0" in text


@pytest.mark.parametrize("force", [False, True])
def test_a_mig_slice_is_refused_force_or_not(h200: GPU, force: bool) -> None:
    by_name = refusal(h200, fake_torch(name="NVIDIA H200 MIG 1g.18gb"), force=force)
    by_mode = refusal(h200, smi=FakeSmi(mig="Enabled"), force=force)
    assert "MIG" in by_name
    assert "MIG" in by_mode


@pytest.mark.parametrize(
    ("smi", "said"),
    [
        (FakeSmi(used="20480"), "20,480 MiB used"),
        (FakeSmi(percent=["97"]), "97 % busy"),
        (FakeSmi(apps=f"GPU-{UUID}, 4242\n"), "1 other process"),
    ],
)
@pytest.mark.parametrize("force", [False, True])
def test_a_shared_gpu_is_refused_force_or_not(h200: GPU, smi: FakeSmi, said: str, force: bool) -> None:
    text = refusal(h200, smi=smi, force=force)
    assert "in use by others" in text
    assert said in text


def test_others_on_another_gpu_do_not_matter(h200: GPU) -> None:
    assert opened(h200, smi=FakeSmi(apps="GPU-other, 4242\n")).uuid == f"GPU-{UUID}"


def test_a_gpu_that_has_just_been_busy_is_looked_at_again(h200: GPU) -> None:
    waited: list[float] = []
    smi = FakeSmi(percent=["90", "40", "0"])
    open_device(h200, force=False, smi=smi, find=modules(), sleep=waited.append)
    assert len(waited) == 2


def test_memory_of_this_process_is_not_held_against_it(h200: GPU) -> None:
    found = opened(h200, fake_torch(initialized=True), FakeSmi(used="20480", percent=["99"]))
    assert any("opened the GPU before" in note for note in found.notes)


def test_values_that_nvidia_smi_does_not_know(h200: GPU) -> None:
    found = opened(h200, smi=FakeSmi(used="[N/A]", percent=["[N/A]"], mig="[N/A]"))
    assert found.uuid == f"GPU-{UUID}"


def test_the_wrong_gpu_is_refused_and_named() -> None:
    text = refusal(load_gpu("h100"))
    assert "'NVIDIA H200'" in text
    assert load_gpu("h100").name in text


def test_names_are_compared_whole(h200: GPU) -> None:
    # "NVIDIA H20" begins "NVIDIA H200"
    assert "'NVIDIA H20'" in refusal(h200, fake_torch(name="NVIDIA H20", sms=78))


def test_force_takes_the_wrong_gpu_and_labels_the_run() -> None:
    found = opened(load_gpu("h100"), force=True)
    assert found.machine.forced is True
    assert found.machine.gpu == load_gpu("h100").name
    assert found.machine.device_name == "NVIDIA H200"
    assert found.notes[0].startswith("--force: this machine's GPU is 'NVIDIA H200'")


def test_force_on_the_right_gpu_labels_nothing(h200: GPU) -> None:
    assert opened(h200, force=True).machine.forced is False


def test_a_file_without_device_names_is_compared_by_what_it_gives(h200: GPU) -> None:
    own = replace(h200, name="mine", device_names=())
    assert any("taken on trust" in note for note in opened(own).notes)
    assert "compute capability 9.0" in refusal(replace(own, compute_capability="8.0"))
    assert "132 multiprocessors" in refusal(replace(own, sms=114))
    bare = replace(own, compute_capability=None, sms=None)
    assert opened(bare).machine.gpu == "mine"


def test_a_gpu_that_cannot_be_opened(h200: GPU) -> None:
    torch = fake_torch()

    def busy(_: int) -> Any:
        raise RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable\nmore")

    torch.cuda.get_device_properties = busy
    assert "busy or unavailable" in refusal(h200, torch)


def test_without_nvidia_smi_there_is_no_telemetry_but_a_note(h200: GPU) -> None:
    found = opened(h200, smi=lambda _: None)
    assert found.machine.driver == "unknown"
    assert found.telemetry() == Telemetry()
    assert any("nvidia-smi does not answer" in note for note in found.notes)


def test_telemetry_is_read_and_rounded() -> None:
    assert telemetry(FakeSmi(), f"GPU-{UUID}") == Telemetry(
        sm_mhz=1980, memory_mhz=3201, power_w=512.33, temperature_c=54
    )


@pytest.mark.parametrize("text", ["[N/A], [Not Supported], [Unknown Error], N/A\n", "", "no devices were found\n"])
def test_telemetry_that_is_not_known(text: str) -> None:
    assert telemetry(lambda _: text, "GPU-x") == Telemetry()


def test_a_missing_nvidia_smi_and_a_silent_one_answer_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError

    def silent(*_: Any, **options: Any) -> Any:
        assert options["timeout"] <= 30
        raise subprocess.TimeoutExpired("nvidia-smi", options["timeout"])

    for fake in (missing, silent):
        monkeypatch.setattr(subprocess, "run", fake)
        assert nvidia_smi.ask_smi(["--query-gpu=name"]) is None
