from __future__ import annotations

import numpy as np
import pytest

from kernelwright.env.compiler.machine.device import Device, device_names, load_device
from kernelwright.env.compiler.machine.gpu_gemm import BOUNDS, estimate_gemm, warp_grid

DEVICE = load_device("h100-lecture")


def one(m=4096, n=4096, k=4096, **knobs):
    values = {"bm": 256, "bn": 128, "bk": 32, "warps": 8, "stages": 4, "group_m": 8} | knobs
    return estimate_gemm(DEVICE, m, n, k, {name: np.array([v]) for name, v in values.items()}).row(
        0
    )


def test_the_breakdown_by_hand():
    row = one()
    assert row["registers"] == 256 * 128 / (32 * 8) + 40 == 168
    assert row["shared_bytes"] == 4 * (256 + 128) * 32 * 2
    assert row["occupancy"] == min(65536 // (168 * 256), 233472 // (98304 + 1024), 64 // 8, 32) == 1
    assert row["tiles"] == 16 * 32
    assert row["waves"] == -(-512 // 132)
    assert row["k_steps"] == 128
    assert row["padding"] == 1
    mma = 2 * 256 * 128 * 32 / (989.4e12 / 132) / 0.96
    assert row["mma_s"] == pytest.approx(mma, rel=1e-12)
    assert row["step_s"] == pytest.approx(max(mma, 800e-9 / 3), rel=1e-12)
    assert row["sm_s"] == pytest.approx(4 * 128 * row["step_s"], rel=1e-12)
    assert row["time_s"] == pytest.approx(max(row["sm_s"], row["hbm_s"]) + 4e-6, rel=1e-12)
    assert row["bound"] == "tensor"


def test_one_stage_hides_no_latency():
    assert one(stages=1)["step_s"] == pytest.approx(one(stages=1)["busy_s"] + 800e-9, rel=1e-12)


def test_padding_counts_the_waste():
    assert one(m=16)["padding"] == 256 / 16
    assert one(m=16)["bound"] in BOUNDS


def test_warp_grids():
    along_m, along_n = warp_grid(np.array([1, 2, 4, 8]))
    assert along_m.tolist() == [1, 1, 2, 4]
    assert along_n.tolist() == [1, 2, 2, 2]


def test_operands_that_fit_l2_are_read_once():
    assert one(m=512, n=512, k=512)["hbm_bytes"] == 3 * 512 * 512 * 2


def test_vectorised_equals_one_by_one():
    columns = {
        "bm": [64, 256],
        "bn": [128, 16],
        "bk": [16, 128],
        "warps": [2, 8],
        "stages": [1, 5],
        "group_m": [1, 8],
    }
    both = estimate_gemm(DEVICE, 2048, 14336, 4096, {k: np.array(v) for k, v in columns.items()})
    for i in range(2):
        alone = one(2048, 14336, 4096, **{k: v[i] for k, v in columns.items()})
        assert both.row(i) == alone


def test_every_device_table_loads():
    assert {"h100-lecture", "h200"} <= set(device_names())
    for name in device_names():
        assert load_device(name).name == name
    assert load_device("h200").hbm_bytes_per_s == 4.8e12


def test_the_roofline():
    device = load_device("h200")
    assert device.floor_s(989.4e12, 1) == 1
    assert device.floor_s(1, 4.8e12) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("sms: 132\n", ""), "missing key 'sms'"),
        (("sms: 132", "smss: 132"), "unknown key 'smss'"),
        (("sms: 132", "sms: many"), "sms: expected int, found 'many'"),
        (("sms: 132", "sms: 0"), "sms: expected a finite number > 0"),
        (("fitted:", "fitted: 3\nother:"), "expected a mapping"),
        (("sms: 132", "sms: .nan"), "sms: expected int"),
        (("1.83e+9", ".nan"), "clock_hz: expected a finite number"),
        (("sms: 132", "sms: [}"), "expected a device table"),
    ],
)
def test_damaged_tables_are_refused(tmp_path, change, message):
    from kernelwright.env.compiler.machine.device import DEVICES_DIR

    path = tmp_path / "mine.yaml"
    path.write_text((DEVICES_DIR / "h200.yaml").read_text().replace(*change))
    with pytest.raises(ValueError, match=message):
        load_device(str(path))


def test_unknown_devices_list_the_known():
    with pytest.raises(ValueError, match="h100-lecture, h200"):
        load_device("h300")


def test_devices_are_values():
    assert isinstance(DEVICE, Device)
    assert hash(DEVICE) == hash(load_device("h100-lecture"))
