"""Buckets: how often something may happen, and whose are kept."""

from __future__ import annotations

from datacollect.net import buckets
from datacollect.net.buckets import Bucket, bucket_of


def test_more_together_than_a_bucket_holds_are_waited_for_afterwards():
    bucket = Bucket(per_s=1.0, most=4.0)
    assert bucket.take(0.0, 10)
    assert not bucket.take(6.9)
    assert bucket.take(7.0)
    assert not bucket.take(10.0, 5)
    assert bucket.take(11.0, 5)


def test_only_so_many_are_kept_and_who_comes_often_is_among_them(monkeypatch):
    monkeypatch.setattr(buckets, "MOST_BUCKETS", 3)
    kept: dict[str, Bucket] = {}
    assert bucket_of(kept, "often", 1.0, 1.0).take(0.0)
    for name in "abcdef":
        bucket_of(kept, name, 1.0, 1.0).take(0.0)
        assert not bucket_of(kept, "often", 1.0, 1.0).take(0.5)
    assert [*kept] == ["e", "f", "often"]
