"""Golden case G7: what a rotating map keeps, for how long, and that nothing expires early, twice or unheard."""

from __future__ import annotations

from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.rotating_map import RotatingMap
from coordinated_bolt.time_cache_map import TimeCacheMap
from tests.support.cli.in_process import HandClock


def filled(made):
    for key in range(100):
        made.put(key, 1)
    return made


@pytest.mark.case(id="G7")
class TestThreeBuckets:
    @pytest.mark.parametrize(("rotations", "are_kept"), [(0, True), (1, True), (3, False)])
    def test_each_key_is_removed_once_until_it_has_expired(self, rotations, are_kept):
        made = filled(RotatingMap(3))
        for _ in range(rotations):
            made.rotate()
        assert [made.remove(key) for key in range(100)] == [are_kept] * 100
        assert [made.remove(key) for key in range(100)] == [False] * 100

    def test_a_put_refreshes_for_two_more_rotations(self):
        made = filled(RotatingMap(3))
        made.rotate()
        made.rotate()
        made.put(7, 2)
        assert made.rotate() == dict.fromkeys(set(range(100)) - {7}, 1)
        assert made.rotate() == {}
        assert made.get(7) == 2
        assert made.rotate() == {7: 2}
        assert 7 not in made


@pytest.mark.parametrize("bucket_count", [1, 0, -1])
def test_a_map_of_fewer_than_two_buckets_is_refused(bucket_count):
    with pytest.raises(ValueError, match=f"rotating map needs at least 2 buckets, got {bucket_count}"):
        RotatingMap[str, int](bucket_count)
    with pytest.raises(ValueError, match=f"rotating map needs at least 2 buckets, got {bucket_count}"):
        TimeCacheMap[str, int](10, HandClock(), bucket_count=bucket_count)


@given(st.integers(2, 6))
def test_an_entry_survives_all_rotations_but_the_nth(bucket_count):
    made = RotatingMap[str, int](bucket_count)
    made.put("a", 1)
    assert [made.rotate() for _ in range(bucket_count)] == [{}] * (bucket_count - 1) + [{"a": 1}]


def test_rotate_calls_back_for_every_entry_it_drops_and_for_none_that_was_removed():
    told: list[tuple[str, int]] = []
    made = RotatingMap[str, int](2, lambda key, value: told.append((key, value)))
    for place, key in enumerate("abcd"):
        made.put(key, place)
    assert made.remove("b")
    assert made.pop("c") == 2
    made.rotate()
    assert told == []
    assert made.rotate() == {"a": 0, "d": 3}
    assert told == [("a", 0), ("d", 3)]


def test_a_callback_may_put_its_entry_back():
    made = RotatingMap[str, int](2, lambda key, value: made.put(key, value + 1))
    made.put("a", 0)
    for _ in range(6):
        made.rotate()
    assert made.get("a") == 3
    assert len(made) == 1


def test_a_callback_that_raises_leaves_a_map_that_works():
    def refuse(key, value):
        raise RuntimeError(key)

    made = RotatingMap[str, int](2, refuse)
    made.put("a", 1)
    made.rotate()
    made.put("b", 2)
    with pytest.raises(RuntimeError, match="a"):
        made.rotate()
    assert "a" not in made
    assert made.get("b") == 2


def test_a_value_of_none_is_a_value():
    made = RotatingMap[str, None](2)
    made.put("a", None)
    assert "a" in made
    assert made.get("a", None) is None
    assert made.remove("a")
    assert not made.remove("a")


def test_what_is_missing_has_the_default():
    made = RotatingMap[str, int](2)
    assert (made.get("a"), made.get("a", 7), made.pop("a"), made.pop("a", 7)) == (None, 7, None, 7)


keys = st.sampled_from("abc")
operations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), keys),
        st.tuples(st.sampled_from(["remove", "pop"]), keys),
        st.tuples(st.just("rotate"), st.none()),
    ),
    max_size=40,
)


@given(st.integers(2, 4), operations)
def test_a_rotating_map_is_a_dict_of_ages(bucket_count, operations):
    made = RotatingMap[str, int](bucket_count)
    ages: dict[str, tuple[int, int]] = {}  # key -> (value, rotations since it was put)
    for number, (name, key) in enumerate(operations):
        if name == "put":
            made.put(key, number)
            ages[key] = (number, 0)
        elif name == "remove":
            assert made.remove(key) == (ages.pop(key, None) is not None)
        elif name == "pop":
            assert made.pop(key) == ages.pop(key, (None,))[0]
        else:
            ages = {k: (value, age + 1) for k, (value, age) in ages.items()}
            dead = {k: value for k, (value, age) in ages.items() if age == bucket_count}
            assert made.rotate() == dead
            ages = {k: entry for k, entry in ages.items() if k not in dead}
        assert len(made) == len(ages)
        assert {k: made.get(k) for k in "abc" if k in made} == {k: value for k, (value, _) in ages.items()}


def test_a_tick_before_its_time_does_nothing_and_one_at_its_time_rotates():
    clock = HandClock(1_000)
    made = TimeCacheMap[str, int](20, clock)  # three buckets: a rotation every 10 s, gone between 20 s and 30 s
    made.put("a", 1)
    for clock.now_s in (1_000, 1_009.9, 1_010, 1_020, 1_029.9):
        assert made.tick() == []
        assert "a" in made
    clock.now_s = 1_030
    assert made.tick() == [("a", 1)]
    assert "a" not in made


def test_a_late_tick_rotates_as_often_as_was_due_and_no_more_than_empties_the_map():
    clock = HandClock(1_000)
    made = TimeCacheMap[str, int](20, clock)
    made.put("a", 1)
    clock.now_s = 1_020
    made.put("b", 2)
    clock.now_s += 1e12
    assert made.tick() == [("a", 1), ("b", 2)]
    made.put("c", 3)
    clock.now_s += 20
    assert made.tick() == []
    clock.now_s += 10
    assert made.tick() == [("c", 3)]


def test_rotations_due_before_an_entry_came_do_not_age_it():
    clock = HandClock(1_000)
    made = TimeCacheMap[str, int](20, clock)
    clock.now_s = 1_029
    made.put("a", 1)  # two rotations are due and no tick came
    clock.now_s = 1_030
    assert made.tick() == []
    clock.now_s = 1_049
    assert made.tick() == []
    clock.now_s = 1_050
    assert made.tick() == [("a", 1)]


def test_what_a_put_found_expired_is_told_by_the_next_tick():
    clock = HandClock(1_000)
    told: list[tuple[str, int]] = []
    made = TimeCacheMap[str, int](20, clock, on_expire=lambda key, value: told.append((key, value)))
    made.put("a", 1)
    clock.now_s = 1_030
    made.put("a", 2)
    assert (made.get("a"), told) == (2, [])
    assert not made.remove("x")
    assert made.tick() == told == [("a", 1)]
    assert made.pop("a") == 2
    assert made.tick() == []


def test_a_clock_that_goes_back_expires_nothing_until_it_has_caught_up():
    clock = HandClock(1_000)
    made = TimeCacheMap[str, int](20, clock)
    clock.now_s = 1_010
    made.put("a", 1)
    for clock.now_s in (0, 1_010, 1_030):
        assert made.tick() == []
    clock.now_s = 1_040
    assert made.tick() == [("a", 1)]


def test_a_callback_may_use_the_map_it_was_called_by():
    clock = HandClock(1_000)
    made = TimeCacheMap[str, int](20, clock, on_expire=lambda key, value: made.put(key, len(made) + value + 1))
    made.put("a", 1)
    clock.now_s = 1_030
    assert made.tick() == [("a", 1)]
    assert made.get("a") == 2


@pytest.mark.parametrize("expiration", [0, -1, float("inf"), float("nan")])
def test_an_expiration_that_is_no_time_is_refused(expiration):
    with pytest.raises(ValueError, match=f"expiration must be a positive number of seconds, got {expiration}"):
        TimeCacheMap[str, int](expiration, HandClock())


def test_many_threads_tick_and_each_entry_is_told_once():
    clock = HandClock(1_000)
    told: list[int] = []
    made = TimeCacheMap[int, int](20, clock, on_expire=lambda key, value: told.append(key))
    for key in range(1_000):
        made.put(key, key)
    clock.now_s += 30
    threads = [Thread(target=made.tick) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(told) == list(range(1_000))


@given(
    st.integers(2, 5),
    st.lists(st.tuples(st.sampled_from(["put", "remove", "tick", "tick"]), keys, st.integers(0, 40)), max_size=40),
)
def test_every_entry_ends_once_never_early_and_no_later_than_the_tick_after_its_time(bucket_count, steps):
    clock = HandClock(0)
    expiration = 8 * (bucket_count - 1)
    told: list[tuple[str, int]] = []
    made = TimeCacheMap[str, int](
        expiration, clock, bucket_count=bucket_count, on_expire=lambda key, value: told.append((key, value))
    )
    put_at: dict[tuple[str, int], float] = {}  # entries that are neither replaced, nor removed, nor told
    for number, (name, key, pause) in enumerate(steps):
        clock.now_s += pause
        mine = next((entry for entry in put_at if entry[0] == key and entry not in made._expired), None)
        if name == "put":
            made.put(key, number)
            if mine is not None and mine not in made._expired:
                del put_at[mine]
            put_at[key, number] = clock.now_s
        elif name == "remove":
            assert made.remove(key) == (mine is not None)
            if mine is not None:
                del put_at[mine]
        else:
            told.clear()
            expired = made.tick()
            assert told == expired
            for entry in expired:
                assert clock.now_s - put_at.pop(entry) > expiration
            assert all(clock.now_s - at < expiration + 8 for at in put_at.values())
    assert len(made) == len(put_at) - len(made._expired)
