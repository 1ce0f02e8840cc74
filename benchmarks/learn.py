"""What does private training cost, beside ordinary training, Opacus and torch.func?

One run: the same models and batches for all; each method takes whole training steps (forward,
backward, clipping, noise, optimiser) in turns, so that a machine's moods hit all alike. Ratios are
medians over turns of a method's time to that of training without privacy in the same turn. Memory
is the peak of a step with parameters and the optimiser's state: on a GPU what torch's allocator
handed out, without the libraries' own workspaces; on a CPU what a process of its own grew by.
On a CPU that others use too, ratios of processors' time with one thread are the better ones.
A method that fails is reported with its reason.

    python benchmarks/learn.py [--device cpu|cuda] [--only TASK ...] [--methods METHOD ...]
                               [--repeats N] [--threads N] [--quick] [--check] [--out FILE]
"""

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from learn_methods import (
    CLIP,
    EAGER,
    ENGINE,
    GRAPHED,
    LABELS,
    METHODS,
    NOISE_MULTIPLIER,
    ON_GPU,
    OURS,
    PEERS,
    PLAIN,
    Method,
)
from learn_models import Batch, Task, cpu_tasks, gpu_tasks
from rich.console import Console
from rich.table import Table

POOL = 3  # batches that steps rotate among
Job = Callable[[], None]


# --- one method on one device -------------------------------------------------------------------


def timed(job: Job, steps: int, device: str) -> tuple[float, float]:
    """Return seconds per call of several in a row, by the clock and of processors.

    On a GPU, from idle to idle; the second is then what its processor in the host took.
    """
    begun = time.process_time()
    if device == "cpu":
        start = time.perf_counter()
        for _ in range(steps):
            job()
        return (time.perf_counter() - start) / steps, (time.process_time() - begun) / steps
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(steps):
        job()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000 / steps, (time.process_time() - begun) / steps


def prime() -> None:
    """Let the GPU's libraries take their workspaces, of both threads and streams that use them."""
    torch.cuda.graph(torch.cuda.CUDAGraph())  # makes the stream that graphs are recorded in
    recording = torch.cuda.graph.default_capture_stream
    for stream in (torch.cuda.current_stream(), recording):
        with torch.cuda.stream(stream):
            for dtype in (torch.float32, torch.bfloat16):
                x = torch.randn(64, 3, 32, 32, device="cuda", dtype=dtype, requires_grad=True)
                layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(30, 30))
                layers.to("cuda", dtype)(x).sum().backward()
        torch.cuda.synchronize()


def job_of(method: Method, pool: list[Batch]) -> Job:
    batches = cycle(pool)
    return lambda: method.step(next(batches))


def started(name: str, task: Task, device: str, pool: list[Batch]) -> tuple[Method, Job, int]:
    """Build a method and warm it up; return with it the bytes of GPU memory that a step needs."""
    base = torch.cuda.memory_allocated() if device == "cuda" else 0
    torch.manual_seed(0)
    method = METHODS[name](task, device, pool[0])
    job = job_of(method, pool)
    job()
    job()
    if device == "cpu" or name == GRAPHED:  # the memory of its graph is not a step's
        return method, job, 0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    job()
    torch.cuda.synchronize()
    return method, job, torch.cuda.max_memory_allocated() - base


def child(name: str, task: Task, pool: list[Batch]) -> None:
    """Print the bytes by which this process grows at most when it trains on a CPU."""

    def status(field: str) -> int:
        text = Path("/proc/self/status").read_text(encoding="ascii")
        return int(text.partition(f"{field}:")[2].split()[0]) * 1024

    tiny = cpu_tasks(reduce=512)["cnn"]  # loads what is loaded once, which is no step's
    started(name, tiny, "cpu", [tiny.batch()])
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = status("VmRSS")
    started(name, task, "cpu", pool)
    print(status("VmHWM") - before)


def grown(name: str, key: str, reduce: int) -> int | None:
    """Run a child; None where there is no /proc to ask."""
    asked = ["--child", name, "--only", key, "--reduce", str(reduce), "--device", "cpu"]
    command = [sys.executable, __file__, *asked]
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    done = subprocess.run(
        command, env={**os.environ, **threads}, capture_output=True, text=True, check=False
    )
    return int(done.stdout.split()[-1]) if done.returncode == 0 else None


# --- all methods, in turns ----------------------------------------------------------------------


def reason(error: BaseException) -> str:
    if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error):
        return "out of memory"
    return f"{type(error).__name__}: {(str(error) or '?').splitlines()[0][:100]}"


def tidy(device: str, *, above: float = 0.0) -> bool:
    """Hand cached GPU memory back if more than a share of the whole is held."""
    if device == "cpu" or torch.cuda.memory_reserved() <= above * torch.cuda.mem_get_info()[1]:
        return False
    torch.cuda.empty_cache()
    return True


def measured(
    task: Task, names: list[str], device: str, *, repeats: int, fill: float, most: float
) -> dict[str, dict[str, Any]]:
    """Let all methods train by turns; give up further turns after ``most`` seconds."""
    begun = time.perf_counter()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = task.tf32
    with torch.device(device):
        pool = [task.batch() for _ in range(POOL)]
    found: dict[str, dict[str, Any]] = {n: {"seconds": [], "processor": []} for n in names}
    methods: dict[str, tuple[Method, Job, int]] = {}

    def drop(name: str, error: BaseException) -> None:
        methods.pop(name, None)
        found[name] = {"failed": reason(error)}
        print(f"  {LABELS[name]:24}{found[name]['failed']}", flush=True)

    for name in names:
        try:
            method, job, peak = started(name, task, device, pool)
            guess = timed(job, 1, device)[0]
            methods[name] = method, job, max(1, min(100, round(fill / guess)))
            found[name]["memory"] = peak or None
            print(f"  {LABELS[name]:24}{guess * 1000:10.2f} ms at first", flush=True)
            del method, job
        except Exception as error:  # of any kind: a peer's limits are a result
            drop(name, error)
        gc.collect()
        tidy(device)
    for turn in range(repeats):
        if turn > 1 and time.perf_counter() - begun > most:
            print(f"  stopped after {turn} turns", flush=True)
            break
        shift = turn % len(names)
        for name in [n for n in names[shift:] + names[:shift] if n in methods]:
            _, job, steps = methods[name]
            try:
                for _ in range(2 if tidy(device, above=0.4) else 1):
                    job()
                wall, used = timed(job, steps, device)
                found[name]["seconds"].append(wall)
                found[name]["processor"].append(used)
            except Exception as error:
                drop(name, error)
                gc.collect()
    if ENGINE in methods:
        noise = methods[ENGINE][0].noise  # type: ignore[attr-defined]
        noise()
        taken = [timed(noise, 5, device)[0] for _ in range(3)]
        found[ENGINE]["noise_seconds"] = statistics.median(taken)
    methods.clear()
    gc.collect()
    tidy(device)
    return found


def _ratios(each: dict[str, Any], plain: dict[str, Any], clock: str) -> list[float]:
    return [a / b for a, b in zip(each[clock], plain[clock], strict=False)]


def summarise(found: dict[str, dict[str, Any]]) -> None:
    """Add medians and ratios to what was measured."""
    plain = found[PLAIN]
    for each in found.values():
        if each.get("seconds"):
            each["median_seconds"] = statistics.median(each["seconds"])
            ratios = sorted(_ratios(each, plain, "seconds"))
            each["ratio"] = statistics.median(ratios)
            each["ratio_range"] = [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]]
            each["processor_ratio"] = statistics.median(_ratios(each, plain, "processor"))
            if found.get(GRAPHED, {}).get("seconds"):
                graphed = _ratios(each, found[GRAPHED], "seconds")
                each["ratio_to_graphed"] = statistics.median(graphed)
        if each.get("memory") and plain.get("memory"):
            each["memory_ratio"] = each["memory"] / plain["memory"]


def checked(task: Task, names: list[str], device: str) -> dict[str, float]:
    """Return how far clipped gradients are from the reference's: equal speed needs equal work."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = task.tf32
    with torch.device(device):
        batch = task.batch()
    found, reference = {}, None
    for name in ["vmap", *(n for n in names if n not in ("vmap", PLAIN, GRAPHED, OURS, EAGER))]:
        torch.manual_seed(0)
        try:
            sums = METHODS[name](task, device, batch).clipped(batch)
            reference = sums if reference is None else reference
            apart = sum(float((sums[n] - r).double().square().sum()) for n, r in reference.items())
            whole = sum(float(r.double().square().sum()) for r in reference.values())
            found[name] = (apart / whole) ** 0.5
            print(f"  {LABELS[name]:24}{found[name]:10.1e} from the reference", flush=True)
        except Exception as error:
            print(f"  {LABELS[name]:24}{reason(error)}", flush=True)
        gc.collect()
        tidy(device)
    return found


# --- the report ---------------------------------------------------------------------------------


def surroundings(device: str) -> dict[str, Any]:
    versions = {"python": sys.version.split()[0]}
    for package in ("torch", "numpy", "opacus", "triton"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    from discreet import __version__

    versions["discreet"] = __version__
    hardware: dict[str, Any] = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }
    if device == "cuda":
        versions["cuda"] = str(torch.version.cuda)
        one = torch.cuda.get_device_properties(0)
        hardware |= {"gpu": one.name, "gpu_bytes": one.total_memory}
    return {"versions": versions, "hardware": hardware}


def described(task: Task, device: str) -> dict[str, Any]:
    with torch.device("meta"):
        parameters = list(task.model().parameters())
    full = "tf32" if task.tf32 and device == "cuda" else "fp32"
    return {
        "task": task.name,
        "batch_size": task.batch_size,
        "parameters": sum(p.numel() for p in parameters),
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "precision": full if task.autocast is None else f"autocast to {task.autocast}",
    }


def show(console: Console, task: Task, found: dict[str, dict[str, Any]]) -> None:
    table = Table(title=f"{task.name}, batch {task.batch_size}", title_justify="left")
    table.add_column("method")
    columns = ("ms a step", "time ratio", "to a graph", "processor", "memory, MiB", "memory ratio")
    for column in columns:
        table.add_column(column, justify="right")
    for name, each in found.items():
        if "failed" in each:
            table.add_row(LABELS[name], "failed")
            continue
        memory, graphed = each.get("memory"), each.get("ratio_to_graphed")
        table.add_row(
            LABELS[name],
            f"{each['median_seconds'] * 1000:.2f}",
            f"{each['ratio']:.2f}",
            f"{graphed:.2f}" if graphed else "",
            f"{each['processor_ratio']:.2f}",
            f"{memory / 2**20:,.0f}" if memory else "",
            f"{each['memory_ratio']:.2f}" if "memory_ratio" in each else "",
        )
    console.print(table)
    for name, each in found.items():
        if "failed" in each:
            console.print(f"{LABELS[name]} failed: {each['failed']}", highlight=False)
    peers = [n for n in PEERS if "ratio" in found.get(n, {})]
    for ours in (n for n in (OURS, EAGER, ENGINE) if "ratio" in found.get(n, {})):
        if peers:
            best = min(peers, key=lambda n: found[n]["ratio"])
            share = found[ours]["ratio"] / found[best]["ratio"]
            console.print(f"{LABELS[ours]}: {share:.2f} of {LABELS[best]}, the fastest peer")
    noise = found.get(ENGINE, {}).get("noise_seconds")
    if noise:
        share = noise / found[ENGINE]["median_seconds"]
        console.print(f"noise: {noise * 1000:.2f} ms, {share:.1%} of the engine's step")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("--only", nargs="+", metavar="TASK", help="leave out other tasks")
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), help="leave out others")
    parser.add_argument("--repeats", type=int, help="turns that each method has")
    parser.add_argument("--fill", type=float, help="seconds that a turn lasts at least, roughly")
    parser.add_argument("--most", type=float, default=50.0, help="seconds after which a task ends")
    parser.add_argument("--threads", type=int, help="of torch on the CPU")
    parser.add_argument("--reduce", type=int, default=1, help="divide batch sizes by this")
    parser.add_argument("--quick", action="store_true", help="small batches, two turns")
    parser.add_argument("--no-memory", action="store_true", help="of processes, which takes long")
    parser.add_argument("--check", action="store_true", help="compare gradients instead of times")
    parser.add_argument("--out", type=Path, help="where results go (whole runs have a default)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if options.quick:
        options.reduce = max(options.reduce, 8)
    options.repeats = options.repeats or (2 if options.quick else 9)
    options.fill = options.fill or (0.02 if options.quick else 0.2)
    partial = options.only or options.methods or options.check or options.reduce > 1
    if not options.out and not partial:
        folder = Path(__file__).parent / "results"
        options.out = folder / f"learn-{options.device}.json"
    return options


def main() -> None:
    """Measure, print a table for each task, and write what is known after each."""
    options = arguments()
    if options.threads:
        torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")  # the peers', of hooks and of options that age
    device = options.device
    tasks = (gpu_tasks if device == "cuda" else cpu_tasks)(reduce=options.reduce)
    unknown = set(options.only or ()) - set(tasks)
    if unknown:
        sys.exit(f"no such task: {', '.join(sorted(unknown))}. There are: {', '.join(tasks)}")
    if options.child:
        task = tasks[options.only[0]]
        child(options.child, task, [task.batch() for _ in range(POOL)])
        return
    names = [n for n in METHODS if not options.methods or n in (PLAIN, *options.methods)]
    if device == "cpu":
        names = [n for n in names if n not in ON_GPU]
    settings = {"clip": CLIP, "noise_multiplier": NOISE_MULTIPLIER, "turns": options.repeats}
    report = {**surroundings(device), "settings": settings, "tasks": {}}
    console = Console(width=110)
    console.print(report["versions"], report["hardware"])
    if device == "cuda":
        prime()
    for key, task in tasks.items():
        if options.only and key not in options.only:
            continue
        print(f"{key}: {task.name}, batch {task.batch_size}", flush=True)
        if options.check:
            checked(task, names, device)
            continue
        how = {"repeats": options.repeats, "fill": options.fill, "most": options.most}
        found = measured(task, names, device, **how)
        if device == "cpu" and not options.quick and not options.no_memory:
            for name, each in found.items():
                if "failed" not in each:
                    each["memory"] = grown(name, key, options.reduce)
        summarise(found)
        show(console, task, found)
        report["tasks"][key] = {**described(task, device), "methods": found}
        if options.out:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
