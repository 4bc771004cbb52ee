"""Equal paths give equal seeds, other paths other seeds."""

from edhnn.seeding import SeedStream, derive_seed


def test_different_paths_give_different_seeds():
    seeds = {derive_seed(0, "split", k) for k in range(100)} | {derive_seed(k, "split", 0) for k in range(1, 100)}
    assert len(seeds) == 199
    assert derive_seed(0, "split", 3) == derive_seed(0, "split", 3)
    assert derive_seed(0, "1") != derive_seed(0, 1)
    assert derive_seed(0, "ab", "c") != derive_seed(0, "a", "bc")
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_restarted_stream_repeats_its_seeds():
    stream = SeedStream(5)
    first = [stream() for _ in range(1000)]
    assert len(set(first)) == 1000
    assert all(0 <= seed < 2**63 for seed in first)
    stream.restart(5)
    assert [stream() for _ in range(1000)] == first
    stream.restart(6)
    assert not set(first) & {stream() for _ in range(1000)}
