"""Token buckets: burst, sustained rate, and eviction of the oldest keys."""

from mturk.service.site.rate_limits import RateLimit, TokenBuckets


def test_a_burst_then_so_many_a_second():
    time = [0.0]
    buckets = TokenBuckets(RateLimit(burst=3, per_second=0.5), now=lambda: time[0])
    assert [buckets.wait("a") for _ in range(5)] == [0, 0, 0, 2, 2]
    time[0] = 2.0  # 2 s * 0.5 a second = 1
    assert [buckets.wait("a") for _ in range(2)] == [0, 2]
    time[0] = 100.0  # never more than the burst
    assert [buckets.wait("a") for _ in range(4)] == [0, 0, 0, 2]


def test_a_clock_that_goes_back_gives_nothing_and_takes_nothing():
    time = [10.0]
    buckets = TokenBuckets(RateLimit(burst=2, per_second=1), now=lambda: time[0])
    assert buckets.wait("a") == 0
    time[0] = 0.0
    assert [buckets.wait("a"), buckets.wait("a")] == [0, 1]


def test_memory_is_bounded_and_the_key_not_seen_for_longest_goes():
    buckets = TokenBuckets(RateLimit(burst=1, per_second=0.001), now=lambda: 0.0, keys=2)
    assert [buckets.wait(key) for key in ("a", "b", "c")] == [0, 0, 0]
    assert buckets.wait("a") == 0  # forgotten, so full again
    assert buckets.wait("c") == 1000
