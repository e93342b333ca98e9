from __future__ import annotations

import json

import pytest

from kernelwright.env.landscape.open import read_landscape
from kernelwright.env.landscape.record import Failure, LandscapeError
from kernelwright.env.landscape.save import convert, format_of
from kernelwright.env.landscape.source import Source
from kernelwright.env.landscape.t1 import from_t1


def write(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def row(bx, **fields):
    return {"block_size_x": bx, "unroll": 1, **fields}


RAN = {"time": 2.0, "times": [1.5, 2.5], "compile_time": 900.0, "GFLOP/s": 7.5}
CACHE = {
    "device_name": "",
    "kernel_name": "toy",
    "problem_size": 4096,
    "tune_params_keys": ["unroll", "block_size_x"],
    "tune_params": {"unroll": [1], "block_size_x": [128, 64, 32, 16, 8]},
    "objective": "time",
    "cache": {
        "1,128": row(128, **RAN, verification_time=0, timestamp="2023-12-22 09:53:48+00:00"),
        "1,64": row(64, time="RuntimeFailedConfig", compile_time=3.0),
        "1,32": row(32, time="InvalidConfig"),
        "1,16": {**row(16), "__error__": "CompilationFailedConfig"},
    },
}


def by_size(landscape, name="block_size_x"):
    return {dict(entry.knobs)[name]: entry for entry in landscape.entries}


def test_a_kernel_tuner_cache_keeps_all_that_it_says(tmp_path):
    found = read_landscape(write(tmp_path / "a.json", CACHE))
    assert (found.format, found.kernel, found.device) == ("kernel_tuner", "toy", "")
    assert found.knob_names == ("unroll", "block_size_x")
    assert found.values == ((1,), (128, 64, 32, 16, 8))
    assert found.extents == (("x", 4096),)
    assert found.objectives == ("time",)
    ran = by_size(found)[128]
    assert ran.samples_ns == (1.5e6, 2.5e6)
    assert ran.costs == (("compile", 900.0), ("verify", 0))
    assert dict(ran.costs_s) == {"compile_s": 0.9, "verify_s": 0}
    assert ran.metrics == (("GFLOP/s", 7.5),)
    assert ran.timestamp == "2023-12-22 09:53:48+00:00"
    failures = {size: (e.error, e.failure) for size, e in by_size(found).items() if e.error}
    assert failures == {
        64: ("RuntimeFailedConfig", Failure.RUNTIME),
        32: ("InvalidConfig", Failure.CONSTRAINTS),
        16: ("CompilationFailedConfig", Failure.COMPILE),
    }


def cut(text, tail):
    return text[: text.rindex(tail)]


UNCLOSED = [
    # As Kernel Tuner leaves it when it is killed between two configurations, and within one.
    (lambda text: cut(text, "}}"), 4, "the file breaks off: no record is lost"),
    (lambda text: cut(text, "}}}"), 3, "the file breaks off: 1 record is lost"),
    (lambda text: cut(text, ', "1,16"'), 3, "the file breaks off: no record is lost"),
    (lambda text: cut(text, ', "1,16"') + ",\n", 3, "the file breaks off: no record is lost"),
    (lambda text: cut(text, "CompilationFailed"), 3, "the file breaks off: 1 record is lost"),
    (lambda text: cut(text, "__error__"), 3, "the file breaks off: 1 record is lost"),
    (lambda text: cut(text, '"block_size_x": 32'), 2, "the file breaks off: 1 record is lost"),
]


@pytest.mark.parametrize(("damage", "count", "note"), UNCLOSED)
def test_an_interrupted_cache_is_read_up_to_its_last_whole_record(tmp_path, damage, count, note):
    text = damage(json.dumps(CACHE))
    found = read_landscape(write(tmp_path / "a.json", text))
    assert len(found.entries) == count
    assert found.notes == (note,)


def test_every_cut_of_a_cache_after_its_first_record_is_read(tmp_path):
    text = json.dumps(CACHE)
    whole = read_landscape(write(tmp_path / "a.json", text)).entries
    for end in range(text.index('"1,64"'), len(text) - 1, 3):
        found = read_landscape(write(tmp_path / "b.json", text[:end]))
        assert found.notes
        assert found.entries == whole[: len(found.entries)]


def test_a_cache_without_a_whole_record_is_refused(tmp_path):
    text = json.dumps(CACHE)
    for end in range(1, text.index("GFLOP"), 7):
        with pytest.raises(LandscapeError, match=r"a\.json"):
            read_landscape(write(tmp_path / "a.json", text[:end]))


def test_damage_in_the_middle_of_a_cache_is_an_error(tmp_path):
    text = json.dumps(CACHE).replace('"unroll": 1, "time": "InvalidConfig"', '"unroll": nul')
    with pytest.raises(LandscapeError, match="expected JSON"):
        read_landscape(write(tmp_path / "a.json", text))


BAD_CACHES = [
    (lambda c: c["cache"]["1,64"].pop("unroll"), "cache '1,64': expected a value of 'unroll'"),
    (lambda c: c["cache"]["1,128"].update(times="x"), "cache '1,128': times: expected a list"),
    (lambda c: c["cache"]["1,128"].update(times=[-1.0]), "cache '1,128': expected positive finite"),
    (lambda c: c["cache"]["1,128"].update(times=[True]), "cache '1,128': expected times"),
    (
        lambda c: c["cache"]["1,128"].update(block_size_x=None),
        "block_size_x: expected a knob value",
    ),
    (lambda c: c["cache"].update({"x": 3}), "cache 'x': "),
    (lambda c: c.update(cache={}), "at least one configuration"),
    (lambda c: c.update(cache=[]), "expected a cache of Kernel Tuner"),
    (lambda c: c["cache"].update({"again": c["cache"]["1,64"]}), "stands twice"),
]


@pytest.mark.parametrize(("damage", "message"), BAD_CACHES)
def test_impossible_caches_are_refused_with_their_place(tmp_path, damage, message):
    cache = json.loads(json.dumps(CACHE))
    damage(cache)
    with pytest.raises(LandscapeError, match=message) as caught:
        read_landscape(write(tmp_path / "a.json", cache))
    assert "a.json" in str(caught.value)


def result(x, invalidity="correct", measured=2.0, **times):
    return {
        "configuration": {"x": x},
        "times": {"framework": 1.0, **times},
        "invalidity": invalidity,
        "correctness": int(invalidity == "correct"),
        "measurements": [{"name": "time", "value": measured, "unit": ""}],
        "objectives": ["time"],
    }


@pytest.mark.parametrize("unit", ["miliseconds", "milliseconds"])
@pytest.mark.parametrize("key", ["compilation", "compilation_time"])
def test_both_spellings_of_t4_are_read_and_one_is_written(tmp_path, unit, key):
    results = [result(1, runtimes=[1.5, 2.5], **{key: 7.0}), result(2, "timeout", "x")]
    results += [result(3, "correctness", "x", runtimes=[1.0]), result(4, "constraints", "x")]
    path = write(tmp_path / "a.json", {"metadata": {"timeunit": unit}, "results": results})
    found = read_landscape(path)
    assert found.format == "t4"
    assert by_size(found, "x")[1].costs == (("compile", 7.0), ("framework", 1.0))
    assert [e.failure for e in found.entries[1:]] == [
        *(Failure.TIMEOUT, Failure.CORRECTNESS, Failure.CONSTRAINTS),
    ]
    assert found.notes == ("the run times of 1 failed configurations are not kept",)
    assert convert(path, tmp_path / "b_t4.json").lost == ()
    text = (tmp_path / "b_t4.json").read_text()
    assert '"timeunit": "milliseconds"' in text
    assert '"compilation": 7.0' in text
    assert read_landscape(tmp_path / "b_t4.json") == found


def test_t4_of_ktt_has_numbers_as_text(tmp_path):
    one = result("32", compilation_time=5.0, runtimes=[3.0], data=2.0)
    one["compilation_data"] = {"registers": 12}
    about = {"timeunit": "microseconds", "device": "RTX", "autotuner": "KTT"}
    found = read_landscape(write(tmp_path / "a.json", {"metadata": about, "results": [one]}))
    (entry,) = found.entries
    assert (entry.knobs, entry.samples_ns) == ((("x", 32),), (3000.0,))
    assert (entry.facts, entry.metrics) == ((("regs", 12.0),), (("time", 2.0), ("times.data", 2.0)))
    assert found.device == "RTX"


def test_ktt_results(tmp_path):
    def one(size, status, **fields):
        pair = {"Name": "size", "Value": size, "ValueType": "UnsignedInt"}
        return {"KernelName": "add", "Status": status, "Configuration": [pair], **fields}

    compiled = {"RegistersCount": 12, "LocalMemorySize": 256}
    kernel = {"KernelFunction": "f", "Duration": 89.5, "CompilationData": compiled}
    results = [
        one(32, "Ok", TotalDuration=89.5, ComputationResults=[kernel], SearcherOverhead=13.0),
        one(64, "CompilationFailed"),
        one(128, "ValidationFailed"),
        one(256, "DeviceLimitsExceeded"),
        one(512, "ComputationFailed"),
    ]
    about = {"Device": "RTX", "TimeUnit": "Microseconds", "KttVersion": "2.2.0"}
    found = read_landscape(write(tmp_path / "a.json", {"Metadata": about, "Results": results}))
    assert (found.format, found.kernel, found.device) == ("ktt", "add", "RTX")
    ran, *failed = found.entries
    assert ran.samples_ns == (89500.0,)
    assert (ran.facts, ran.costs) == ((("regs", 12.0), ("shared", 256.0)), (("strategy", 13.0),))
    assert [entry.failure for entry in failed] == [
        *(Failure.COMPILE, Failure.CORRECTNESS, Failure.CONSTRAINTS, Failure.RUNTIME),
    ]
    assert found.metadata == (("KttVersion", "2.2.0"),)


def test_a_triton_cache(tmp_path):
    def config(bm, warps):
        fields = {"num_stages": 3, "num_ctas": 1, "maxnreg": None, "ir_override": None}
        return {"kwargs": {"BM": bm}, "num_warps": warps, **fields}

    inf = float("inf")
    timings = [[config(64, 4), [0.5, 0.4, 0.6]], [config(128, 8), [inf, inf, inf]]]
    path = tmp_path / "matmul.autotune.json"
    write(path, {"key": ["512", "torch.float16"], "configs_timings": timings})
    found = read_landscape(path)
    assert (found.format, found.kernel) == ("triton", "matmul")
    assert found.knob_names == ("BM", "num_warps", "num_stages", "num_ctas")
    assert found.entries[0].samples_ns == (0.5e6,)
    assert found.entries[1].failure is Failure.COMPILE
    convert(path, tmp_path / "again.autotune.json")
    again = json.loads((tmp_path / "again.autotune.json").read_text())
    assert again["key"] == ["512", "torch.float16"]
    assert [t for _, t in again["configs_timings"]] == [t for _, t in timings]
    assert again["configs_timings"][0][0] == {**config(64, 4), "pre_hook": None}


LOG = """run_id,kernel_id,timestamp_s,config_index,generation,status,perf_ms,compile_time_s,config
r,k,0.10,1,0,started,,,"Config(block_sizes=[64, 32], num_warps=4)"
r,k,0.50,2,0,ok,0.250000,1.50,"Config(block_sizes=[64, 32], num_warps=4)"
r,k,0.60,3,0,error,,0.20,"Config(block_sizes=[128, 32], num_warps=4)"
r,k,0.70,4,0,peer_compilation_fail,,,"Config(block_sizes=[128, 64], num_warps=4)"
r,k,0.80,5,1,ok,0.240000,,"helion.Config(block_sizes=[64, 32], num_warps=4)"
r,k,0.90,6,1,started,,,"Config(block_sizes=[16, 16], num_warps=8)"
"""


def test_a_helion_log_with_its_metadata(tmp_path):
    about = {"run_id": "r", "kernel_name": "add", "hardware_info": {"device_name": "B200"}}
    (tmp_path / "tune.meta.jsonl").write_text(json.dumps(about) + "\n")
    found = read_landscape(write(tmp_path / "tune.csv", LOG))
    assert (found.format, found.kernel, found.device) == ("helion", "add", "B200")
    assert found.knob_names == ("block_sizes_0", "block_sizes_1", "num_warps")
    assert found.entries[0].times == (0.25, 0.24)
    assert [e.failure for e in found.entries[1:]] == [Failure.RUNTIME, Failure.COMPILE]
    assert found.notes == (
        "1 configurations were begun and not finished",
        "1 repeated measurements were merged",
    )


def test_a_helion_log_that_breaks_off_or_stands_alone(tmp_path):
    broken = LOG + 'r,k,1.00,7,1,ok,0.2,,"Config(block_si'
    found = read_landscape(write(tmp_path / "tune.csv", broken))
    assert "the last line breaks off: 1 record is lost" in found.notes
    assert any("tune.meta.jsonl" in note for note in found.notes)
    two = LOG + 'other,k,1,1,0,ok,0.1,,"Config(block_sizes=[1, 1], num_warps=1)"\n'
    with pytest.raises(LandscapeError, match="expected one run_id, found 2"):
        read_landscape(write(tmp_path / "tune.csv", two))
    middle = LOG.replace("Config(block_sizes=[128, 32]", "what(", 1)
    with pytest.raises(LandscapeError, match=":4: expected a row of a Helion log"):
        read_landscape(write(tmp_path / "tune.csv", middle))


def tvm(tile, costs, error=0, workload=(8, 8)):
    entity = [["tile_y", "sp", [-1, tile]], ["unroll", "an", "vec"]]
    return {
        "input": ["llvm", "matmul", list(workload), {}],
        "config": {"index": tile, "code_hash": None, "entity": entity},
        "result": [costs, error, 1.5, 1617974250.0],
        "version": 0.2,
        "tvm_version": "0.8.dev0",
    }


def test_an_autotvm_log(tmp_path):
    rows = [tvm(2, [1e-3]), tvm(4, [1e9], 4), tvm(8, [1e9], 7), tvm(2, [2e-3])]
    path = write(tmp_path / "tune.log", "\n".join(map(json.dumps, rows)) + "\n")
    found = read_landscape(path)
    assert (found.format, found.device) == ("autotvm", "llvm")
    assert found.kernel == "matmul[8,8]"
    assert found.entries[0].times == (1e-3, 2e-3)
    assert dict(found.entries[0].knobs) == {"tile_y": "[-1, 2]", "unroll": "vec"}
    assert [e.failure for e in found.entries[1:]] == [Failure.RUNTIME, Failure.TIMEOUT]
    assert found.entries[0].timestamp == "2021-04-09 13:17:30+00:00"
    with path.open("a") as file:
        file.write(json.dumps(tvm(16, [1.0]))[:40])
    assert "the last line breaks off: 1 record is lost" in read_landscape(path).notes
    write(path, "\n".join(map(json.dumps, [*rows, tvm(2, [1.0], workload=(9,))])))
    with pytest.raises(LandscapeError, match="expected one workload, found 2"):
        read_landscape(path)


def test_an_ansor_log_has_the_differences_of_its_steps_as_knobs(tmp_path):
    def line(split, costs, error=0):
        steps = [["SP", 2, 0, 1024, [split, 4], 1], ["AN", 2, 0, 2]]
        return {"i": [['["key"]', "cuda"], [[], steps]], "r": [costs, error, 2.0, 0], "v": "v0.6"}

    rows = [line(1, [1e-3, 1.1e-3]), line(2, [1e9], 2)]
    found = read_landscape(write(tmp_path / "a.json", "\n".join(map(json.dumps, rows))))
    assert found.knob_names == ("s0_4_0",)
    assert found.entries[0].times == (1e-3, 1.1e-3)
    assert found.entries[1].failure is Failure.COMPILE
    single = read_landscape(write(tmp_path / "a.json", json.dumps(rows[0])))
    assert single.knob_names == ("steps",)


SPACE = {
    "General": {"BenchmarkName": "toy"},
    "ConfigurationSpace": {
        "TuningParameters": [
            {
                "Name": "x",
                "Type": "int",
                "Values": "[16 * i for i in range(1, 5)]",
                "Default": [32],
            },
            {"Name": "p", "Type": "string", "Values": "['a', 'b']"},
            {"Name": "f", "Type": "float", "Values": "[1, 0.5] + [2.0]"},
            {"Name": "u", "Type": "bool", "Values": "[True, False]"},
        ],
        "Conditions": [{"Expression": "x % 32 == 0 or u == 0", "Parameters": ["x", "u"]}],
    },
    "KernelSpecification": {"KernelName": "toy", "Language": "OpenCL", "ProblemSize": [64, 64]},
}


def test_t1_is_read_and_written(tmp_path):
    path = write(tmp_path / "a.json", SPACE)
    space = from_t1(Source(path))
    assert [p.values for p in space.parameters] == [
        *((16, 32, 48, 64), ("a", "b"), (1.0, 0.5, 2.0), (True, False)),
    ]
    assert space.parameters[0].default == 32
    assert (space.conditions, space.sizes) == (("x % 32 == 0 or u == 0",), (64, 64))
    convert(path, tmp_path / "b.t1.json")
    again = from_t1(Source(tmp_path / "b.t1.json"))
    assert (again.parameters, again.conditions, again.kernel) == (
        *(space.parameters, space.conditions, space.kernel),
    )
    assert json.loads((tmp_path / "b.t1.json").read_text())["General"]["BenchmarkName"] == "toy"


def test_t1_is_no_landscape(tmp_path):
    path = write(tmp_path / "a.json", SPACE)
    with pytest.raises(LandscapeError, match="found the description of a search space"):
        read_landscape(path)
    with pytest.raises(LandscapeError, match="T1 has no results, which jsonl is made of"):
        convert(path, tmp_path / "b.jsonl")
    done = convert(write(tmp_path / "c.json", CACHE), tmp_path / "c.t1.json")
    assert done.lost == ("the results of all 4 configurations",)
    assert from_t1(Source(tmp_path / "c.t1.json")).parameters[1].values == (128, 64, 32, 16, 8)


VALUES = [
    "__import__('os').getcwd()",
    "open('x')",
    "[i for i in range(10**9)]",
    "range(1000000)",
    "[1] * 10**9",
    "[2**1000000]",
    "x",
    "3",
    "[",
]


@pytest.mark.parametrize("text", VALUES)
def test_values_that_are_no_short_list_of_literals_are_refused(tmp_path, text):
    space = json.loads(json.dumps(SPACE))
    space["ConfigurationSpace"]["TuningParameters"][0]["Values"] = text
    with pytest.raises(LandscapeError, match=r"TuningParameters\[0\]"):
        from_t1(Source(write(tmp_path / "a.json", space)))


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", "hello", "3", "{"])
def test_what_is_no_landscape_is_refused_with_the_formats_that_are(tmp_path, text):
    with pytest.raises(LandscapeError, match=r"a\.json"):
        read_landscape(write(tmp_path / "a.json", text))


def test_the_ending_says_what_is_written(tmp_path):
    names = {
        "a.jsonl.gz": "jsonl",
        "a.json": "kernel_tuner",
        "a_T4.json.gz": "t4",
        "a.t4.json": "t4",
        "a.t1.json": "t1",
        "k.autotune.json": "triton",
        "k.best_config": "helion",
    }
    assert {name: format_of(tmp_path / name) for name in names} == names
    with pytest.raises(LandscapeError, match=r"ending in one of \.jsonl"):
        format_of(tmp_path / "a.txt")
    with pytest.raises(LandscapeError, match="found one that is only read"):
        format_of(tmp_path / "a.json", "ktt")
    with pytest.raises(LandscapeError, match="did you mean 'kernel_tuner'"):
        format_of(tmp_path / "a.json", "kerneltuner")
