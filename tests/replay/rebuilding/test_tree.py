import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import TRACE, log, own, sid, span
from spanreplay.replay.rebuilding.order import Moment, in_order
from spanreplay.replay.rebuilding.overlap import overlapping
from spanreplay.replay.rebuilding.tree import SpanKey, build, disagree, merged
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import EventRecord


def key(number: int | str) -> SpanKey:
    return SpanKey(TRACE, sid(number))


def test_a_missing_parent_keeps_its_children_and_is_named() -> None:  # B01, B03
    forest = build([span(2, 99), span(3, 2)])
    assert set(forest.spans) == {key(2), key(3)}
    assert forest.roots == (key(2),)
    assert forest.orphans == {key(2): sid(99)}
    assert forest.parents == {key(3): key(2)}


def test_two_missing_parents_keep_both_their_groups() -> None:  # B05
    spans = [span(n, 90 + n % 2, start=n) for n in range(1, 7)]
    forest = build(spans)
    assert len(forest.roots) == 6
    assert set(forest.orphans.values()) == {sid(90), sid(91)}


@pytest.mark.parametrize("nothing", [None, "", "0000000000000000"])
def test_no_parent_in_any_spelling_is_no_orphan(nothing: str | None) -> None:
    forest = build([span(1, nothing)])
    assert not forest.orphans
    assert forest.roots == (key(1),)


def test_a_sampled_out_parent_is_replaced_by_the_step_around() -> None:
    inner = own(3, 99, seq=2, attributes={a.STEP_PARENT: sid(1)})
    forest = build([own(1, seq=1), inner])
    assert forest.parents[key(3)] == key(1)
    assert forest.orphans[key(3)] == sid(99), "the OpenTelemetry parent is still reported as missing"


def test_loops_are_cut_at_their_earliest_span() -> None:
    forest = build([span(1, 3, start=5), span(2, 1, start=1), span(3, 2, start=2), span(4, 4), span(5, 3)])
    assert forest.cycles == {key(2), key(4)}
    assert forest.parents == {key(1): key(3), key(3): key(2), key(5): key(3)}
    assert list(forest.ancestors(key(5))) == [key(3), key(2)]


def test_a_loop_is_cut_too_where_a_span_began_after_its_parent_ended() -> None:
    forest = build([span(1), span(2, 3, start=1, end=5), span(3, 2, start=20), span(4, 3, start=50)])
    assert forest.cycles == {key(2), key(3)}
    assert forest.parents == {key(4): key(3)}, "outside a loop spans may go on behind their parents"


def test_a_span_told_twice_is_one_and_the_fuller_wins() -> None:  # B37
    poor = span(1, end=None, attributes={"a": "x", "only": 1})
    full = span(1, end=10, attributes={"a": "longer", "b": "y"}, events=(EventRecord(name="e", time_ns=3),))
    for records in ([poor, full], [full, poor], [poor, full, poor, full]):
        forest = build(records)
        assert len(forest.spans) == 1
        assert forest.duplicates == len(records) - 1
        assert forest.spans[key(1)].attributes == {"a": "longer", "b": "y", "only": 1}
        assert forest.spans[key(1)].end_ns == 10
    assert merged(full, full) is full


def test_logs_go_to_their_span_in_order_of_time() -> None:
    late, early = log(1, "x", {}, time=9), log(1, "x", {}, time=2)
    assert build([late, span(1), early]).logs == {key(1): (early, late)}


def test_depth_has_no_limit() -> None:
    depth = 8_000
    forest = build([span(n + 1, n or None, start=n) for n in range(depth)])
    assert sum(1 for _ in forest.ancestors(key(depth))) == depth - 1
    moments = [Moment(key=k, parent=forest.parents.get(k), start_ns=s.start_ns, end_ns=s.end_ns) for k, s in forest.spans.items()]
    assert in_order(moments) == [key(n + 1) for n in range(depth)]
    assert overlapping(moments).beside == {}


# ---- order -----------------------------------------------------------------------------------------------------------


def moment(
    name: str,
    parent: str | None = None,
    start: int = 0,
    end: int | None = 0,
    count: tuple[int, int] | None = None,
    clock: str | None = None,
) -> Moment[str]:
    process, (first, last) = (None, (None, None)) if count is None else ("p", count)
    return Moment(
        key=name, parent=parent, start_ns=start, end_ns=end, process=process, seq_start=first, seq_end=last, clock=clock, tie=name
    )


def test_on_equal_times_the_parent_comes_first() -> None:
    assert in_order([moment("a", "b", 5), moment("b", "c", 5), moment("c", None, 5)]) == ["c", "b", "a"]


def test_one_process_counts_and_its_clock_does_not_matter() -> None:
    moments = [moment("late", start=1, count=(3, 4)), moment("early", start=9, count=(1, 2))]
    assert in_order(moments) == ["early", "late"]


def test_a_true_tie_is_broken_the_same_way_twenty_times() -> None:  # B39
    spans = [(f"{n:016x}", name) for n, name in zip((5, 3, 1, 4, 2), ("z", "y", "x", "w", "v"), strict=True)]
    shuffler = random.Random(1)
    orders = set()
    for _ in range(20):
        shuffler.shuffle(spans)
        moments = [Moment(key=name, parent=None, start_ns=7, end_ns=9, tie=span_id) for span_id, name in spans]
        orders.add(tuple(in_order(moments)))
    assert orders == {("x", "v", "y", "w", "z")}


def test_on_equal_starts_the_first_to_end_comes_first() -> None:
    assert in_order([moment("a", start=1, end=9), moment("b", start=1, end=5), moment("c", start=1, end=None)]) == ["b", "a", "c"]


def test_a_child_whose_clock_is_behind_comes_after_its_parent_and_keeps_its_distances() -> None:
    moments = [
        moment("child 2", "parent", 40, 45, clock="other"),
        moment("child 1", "parent", 10, 15, clock="other"),
        moment("parent", None, 1000, 1100, clock="here"),
        moment("sibling", "parent", 1020, 1030, clock="here"),
    ]
    assert in_order(moments) == ["parent", "child 1", "sibling", "child 2"]


def test_counts_that_contradict_the_tree_do_not_stop_it() -> None:
    moments = [moment("parent", None, 5, 9, (8, 9)), moment("child", "parent", 6, 7, (1, 2)), moment("next", None, 7, 8, (3, 4))]
    assert in_order(moments) == ["next", "parent", "child"], "of the counts as many hold as the tree lets hold"


@st.composite
def moments_of_a_run(draw: st.DrawFn) -> list[Moment[int]]:
    made: list[Moment[int]] = []
    for number in range(draw(st.integers(1, 8))):
        parent = draw(st.none() | st.integers(0, number - 1)) if number else None
        start = draw(st.integers(0, 5))
        process = draw(st.sampled_from([None, "a", "b"]))
        made.append(
            Moment(
                key=number,
                parent=parent,
                start_ns=start,
                end_ns=draw(st.none() | st.integers(0, 3).map(lambda n, s=start: s + n)),  # type: ignore[misc]
                process=process,
                seq_start=draw(st.none() | st.integers(0, 20)),
                seq_end=draw(st.none() | st.integers(0, 20)),
                clock=process,
                tie=f"{draw(st.integers(0, 99)):02}{number}",
            )
        )
    return made


@settings(max_examples=60, deadline=None)
@given(moments_of_a_run(), st.randoms(use_true_random=False))
def test_any_run_has_one_order_however_it_arrives(moments: list[Moment[int]], shuffler: random.Random) -> None:
    order = in_order(moments)
    assert sorted(order) == list(range(len(moments)))
    place = {k: n for n, k in enumerate(order)}
    for m in moments:
        assert m.parent is None or place[m.parent] < place[m.key]
    beside = overlapping(moments).beside
    assert all(one in beside[other] for one in beside for other in beside[one])
    shuffled = list(moments)
    shuffler.shuffle(shuffled)
    assert in_order(shuffled) == order
    assert {k: set(v) for k, v in overlapping(shuffled).beside.items()} == {k: set(v) for k, v in beside.items()}


@settings(max_examples=60, deadline=None)
@given(moments_of_a_run())
def test_overlaps_are_those_of_the_definition(moments: list[Moment[int]]) -> None:
    """Against the definition, written out pair by pair, for runs that one process counted."""
    counted = [
        Moment(
            key=m.key, parent=m.parent, start_ns=0, end_ns=0, process="p", seq_start=m.key * 2, seq_end=m.key * 2 + 1 + (m.end_ns or 0) * 3
        )
        for m in moments
    ]
    parents = {m.key: m.parent for m in counted}

    def inside(one: int | None, other: int) -> bool:
        while one is not None:
            one = parents[one]
            if one == other:
                return True
        return False

    expected = {
        (x.key, y.key)
        for x in counted
        for y in counted
        if x.key != y.key
        and not inside(x.key, y.key)
        and not inside(y.key, x.key)
        and (x.seq_start or 0) < (y.seq_end or 0)
        and (y.seq_start or 0) < (x.seq_end or 0)
    }
    assert {(k, other) for k, others in overlapping(counted).beside.items() for other in others} == expected


def test_touching_is_not_overlapping() -> None:
    assert overlapping([moment("a", start=0, end=5), moment("b", start=5, end=9)]).beside == {}
    assert overlapping([moment("a", start=0, end=6), moment("b", start=5, end=9)]).beside == {"a": ["b"], "b": ["a"]}


def test_what_never_ended_runs_on() -> None:
    assert overlapping([moment("a", start=0, end=None), moment("b", start=5, end=9)]).beside == {"a": ["b"], "b": ["a"]}


def test_more_pairs_than_are_compared_are_said_to_be_missing() -> None:
    moments = [moment(str(n), start=n, end=None) for n in range(20)]
    assert overlapping(moments, most=190).whole
    cut = overlapping(moments, most=50)
    assert not cut.whole
    assert sum(map(len, cut.beside.values())) == 100


def test_causes_decide_between_what_started_together_but_not_against_the_tree() -> None:
    together = [moment(name, "p", start=5, end=end) for name, end in (("a", 6), ("b", 7), ("c", 8))]
    top = moment("p", start=1, end=90)
    assert in_order([top, *together], [("c", "b"), ("b", "a")]) == ["p", "c", "b", "a"]
    assert in_order([top, *together], [("a", "p")]) == ["p", "a", "b", "c"], "a parent comes first all the same"
    assert sorted(in_order([top, *together], [("a", "b"), ("b", "a")])) == ["a", "b", "c", "p"]


@pytest.mark.parametrize(
    ("changes", "differ"),
    [
        ({}, False),
        ({"attributes": {"a": 1, "b": 2}}, False),
        ({"attributes": {"a": 2}}, True),
        ({"name": "another"}, True),
        ({"status": 2}, True),
        ({"status": 0}, False),
        ({"status_message": "other"}, True),
        ({"parent_span_id": sid(7)}, True),
        ({"parent_span_id": None}, False),
        ({"start_ns": 5_000_999}, False),
        ({"start_ns": 9_000_000}, True),
        ({"end_ns": 90_000_000}, True),
        ({"end_ns": None}, False),
        ({"events": ()}, False),
        ({"events": (EventRecord(name="e", time_ns=6_000_001, attributes={"x": 1, "y": 2}),)}, False),
        ({"events": (EventRecord(name="e", time_ns=6_000_001, attributes={"x": 2}),)}, True),
    ],
)
def test_two_records_of_a_span_disagree_where_both_say_something_and_not_the_same(changes: dict[str, Any], differ: bool) -> None:
    event = EventRecord(name="e", time_ns=6_000_000, attributes={"x": 1})
    one = replace(
        span(1, 2, attributes={"a": 1}, events=(event,)), name="n", status=1, status_message="m", start_ns=5_000_000, end_ns=8_000_000
    )
    other = replace(one, **changes)
    assert (disagree(one, other), disagree(other, one)) == (differ, differ)
