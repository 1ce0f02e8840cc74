"""The secure source never repeats itself: not across forks, threads, processes or rekeying."""

import multiprocessing
import os
import pickle
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from discreet import noise
from discreet.noise import SYSTEM, SecureSource, Source, discrete_laplace
from discreet.noise import source as source_module
from discreet.noise.source import in_parts
from discreet.testing import SeededSource


def _child_bytes(queue):
    queue.put(SYSTEM.read(32))


def _through_fork(give):
    """Run ``give`` in a forked child and in the parent; return both results."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover - the child
        os.write(writer, give())
        os._exit(0)
    os.close(writer)
    ours = give()
    with os.fdopen(reader, "rb") as pipe:
        theirs = pipe.read()
    os.waitpid(pid, 0)
    return ours, theirs


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking with threads about
def test_a_forked_child_has_its_own_bytes():
    SYSTEM.read(8)  # make sure that the parent's keystream exists
    ours, theirs = _through_fork(lambda: SYSTEM.read(64))
    assert len(theirs) == 64
    assert ours != theirs


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_drops_the_parent_s_prepared_samples():
    noise.discrete_gaussian(2**40)  # fills the pool
    ours, theirs = _through_fork(
        lambda: b"".join(
            noise.discrete_gaussian(2**40).to_bytes(16, "little", signed=True) for _ in range(8)
        )
    )
    assert ours != theirs


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_that_python_did_not_see_is_noticed_by_its_process_id(monkeypatch):
    source = SecureSource()
    source.read(8)
    stream = source._keystream
    key = stream.cipher
    monkeypatch.setattr(os, "getpid", lambda: -1)
    source.read(8)
    assert stream.cipher is not key


@pytest.mark.lengthy
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_multiprocessing_children_have_their_own_bytes(method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    children = [context.Process(target=_child_bytes, args=(queue,)) for _ in range(3)]
    for child in children:
        child.start()
    seen = {queue.get(timeout=60) for _ in children} | {SYSTEM.read(32)}
    for child in children:
        child.join()
    assert len(seen) == 4


def test_threads_have_their_own_bytes():
    seen = []
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        seen.extend(SYSTEM.read(16) for _ in range(200))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 1600


def test_threads_share_a_sampler_without_sharing_samples():
    drawn = []

    def work():
        drawn.extend(noise.rounded_laplace(2.0**50) for _ in range(3000))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # 12,000 draws among about 2**51 values: two equal ones have a chance below 1e-7.
    assert len(set(drawn)) == 12_000


def test_the_key_changes_regularly():
    source = SecureSource()
    source.read(1)
    first = source._keystream.cipher
    for _ in range(source_module._REKEY_AFTER // source_module._LONGEST_READ):
        source.read(source_module._LONGEST_READ)
    assert source._keystream.cipher is not first


def test_long_and_empty_reads():
    size = 3 * source_module._LONGEST_READ + 5
    assert len(SYSTEM.read(size)) == size
    assert SYSTEM.read(0) == b""


def test_bytes_are_uniform():
    import numpy as np

    counts = np.bincount(np.frombuffer(SYSTEM.read(1 << 20), dtype=np.uint8), minlength=256)
    # Chi-square with 255 degrees of freedom: above 400 with probability 1e-8, below 140 with 1e-9.
    statistic = ((counts - 4096) ** 2 / 4096).sum()
    assert 140 < statistic < 410


def test_a_pickled_source_carries_no_key():
    copy = pickle.loads(pickle.dumps(SYSTEM))
    assert copy.read(16) != SYSTEM.read(16)


def test_both_sources_have_the_shape_and_say_what_they_are():
    assert isinstance(SYSTEM, Source)
    assert isinstance(SeededSource(1), Source)
    assert SYSTEM.is_secure
    assert not SeededSource(1).is_secure
    assert "INSECURE" in repr(SeededSource(1))


# They let users' own augmentations and models draw what they draw, and put it back.
SEEDS_OF_OTHERS = {"making.py", "chance.py"}


def test_the_library_never_names_an_insecure_generator():
    """Only made-up data, attackers and auditors may draw otherwise: nothing of theirs protects."""
    package = Path(source_module.__file__).parents[1]
    culprits = [
        path.name
        for path in package.rglob("*.py")
        if not {"attacks", "audit", "datasets", "testing"} & set(path.relative_to(package).parts)
        and path.name not in SEEDS_OF_OTHERS
        and re.search(r"^[^#>\"`]*(np\.random|import random|from random)", path.read_text(), re.M)
    ]
    assert culprits == []


@pytest.mark.parametrize("processors", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 65_536, 65_537, 262_143, 1_000_003])
def test_parts_make_up_the_whole(monkeypatch, processors, count):
    monkeypatch.setattr("discreet.noise.source._processors", lambda: processors)
    monkeypatch.setattr("discreet.noise.source._PER_THREAD", 1 << 17)
    touched, threads = np.zeros(count, dtype=np.int64), set()

    def work(part):
        touched[part] += 1
        threads.add(threading.get_ident())

    in_parts(work, count, source=SYSTEM)
    assert (touched == 1).all()
    assert len(threads) <= processors
    seeded = []
    in_parts(seeded.append, count, source=SeededSource(1))
    assert seeded == sorted(seeded, key=lambda part: part.start)
    assert sum(part.stop - part.start for part in seeded) == count


def test_threads_never_share_a_keystream(monkeypatch):
    monkeypatch.setattr("discreet.noise.source._processors", lambda: 4)
    monkeypatch.setattr("discreet.noise.source._PER_THREAD", 1 << 17)
    drawn = discrete_laplace(2**50, 1 << 19)
    # Two equal ones among 2**19 draws of this width have a chance of about 2**-14; a shared
    # keystream would make 2**17 pairs.
    assert np.unique(drawn).size >= drawn.size - 5


def test_an_error_in_a_part_is_raised_and_a_missing_thread_is_not(monkeypatch):
    monkeypatch.setattr("discreet.noise.source._processors", lambda: 2)
    monkeypatch.setattr("discreet.noise.source._PER_THREAD", 1 << 17)

    def fail(_part):
        raise ValueError("from a part")

    with pytest.raises(ValueError, match="from a part"):
        in_parts(fail, 1 << 20, source=SYSTEM)

    def none_left(_threads):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("discreet.noise.source.ThreadPoolExecutor", none_left)
    assert discrete_laplace(3, 1 << 20).size == 1 << 20
