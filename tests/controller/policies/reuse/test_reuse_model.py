import numpy as np
import pytest

from controller.policies.reuse.reuse_ages import AGE_EDGES, BUCKETS, TICK_TOKENS, USUAL_BLOCK_TOKENS
from controller.policies.reuse.reuse_classes import (
    CLASSES,
    FIRST_GAP_CLASS,
    LAST,
    LEVELS,
    MAX_CHILDREN,
    MIN_CHILDREN,
    class_of,
    lineage_of,
    new_class,
)
from controller.policies.reuse.reuse_history import Block, History
from controller.policies.reuse.reuse_model import Learner, ReuseModel, bucket_of
from controller.policies.reuse.reuse_parts import Parts

YOUNG = new_class(0, is_last=False)


def test_classes() -> None:
    again = {class_of(count, gap_ticks) for count in (2, 5, 20, 10**6) for gap_ticks in (0.0, 0.3, 7.0, 1e9)}
    assert all(FIRST_GAP_CLASS <= kind < CLASSES for kind in again)
    once = {new_class(lineage_of(count), is_last=False) for count in (0, 1, 2, 10**6)}
    assert all(LAST < kind < FIRST_GAP_CLASS for kind in once)
    assert new_class(3, is_last=True) == LAST
    assert class_of(9, 0.0) == CLASSES - 1
    assert class_of(2, 8.0) == class_of(3, 15.9) == class_of(4, 8.0) - 1 == class_of(2, 7.9) - LEVELS
    assert class_of(2, 1e9) == FIRST_GAP_CLASS


def test_what_grows_from_a_block_is_told_by_what_grew_from_it_before() -> None:
    history = History(ReuseModel(), remembered=1000)

    def grow(key: int, parent: Block, times: int) -> int:
        block = history.blocks.get(key) or history.begin(key, parent, False)
        for _ in range(times):
            history.asked(block, 1, 0)
        return block.lineage

    read_once, talked = (history.begin(key, None, False) for key in (-1, -2))
    for parent in (read_once, talked):
        for _ in range(2):
            history.asked(parent, 1, 0)
    for key in range(40):
        grow(key, read_once, 1)
        grow(100 + key, talked, 1 + key % 2)
    new = grow(50, read_once, 1), grow(150, talked, 1)
    assert new == (lineage_of(2, 40, 0), lineage_of(2, 40, 20))
    assert new[0] > new[1] >= lineage_of(2, MIN_CHILDREN, MIN_CHILDREN) > lineage_of(10**6)
    for key in range(1000, 1000 + 2 * MAX_CHILDREN):
        grow(key, talked, 1)
    assert talked.born < MAX_CHILDREN
    assert grow(151, talked, 1) > new[1]


def test_buckets_follow_the_edges() -> None:
    assert bucket_of(0) == 0
    for number, edge in enumerate(AGE_EDGES, 1):
        assert bucket_of(edge) == number
        assert bucket_of(edge - 1) == number - 1
    assert bucket_of(10**9) == BUCKETS - 1


def test_before_anything_is_seen_young_and_often_is_better() -> None:
    index = ReuseModel().index
    assert index[YOUNG][2] > index[YOUNG][10] > index[YOUNG][20] > 0
    assert index[class_of(9, 1.0)][8] > index[class_of(9, 30.0)][8] > index[YOUNG][8]


def test_from_cold_what_came_first_stays_until_more_is_known() -> None:
    """Conversations go on after more than a small pool full of others: after 2,400 to 3,100 accesses."""
    index = ReuseModel().index[YOUNG]
    assert index[bucket_of(3000 * USUAL_BLOCK_TOKENS // TICK_TOKENS)] > 0.65 * index[0]


def test_what_a_request_did_is_no_habit_of_its_lineage() -> None:
    """Twenty blocks of one chain that came again at once, of a lineage seen seldom, make the lineage better
    at ages near, not the best of all at that very age."""
    model, seldom = learned_at_all_ages(0.1), new_class(3, is_last=False)
    before = model.index[YOUNG]
    then = bucket_of(60)
    model._exposure[seldom][then] = model._reuses[seldom][then] = 20.0
    model.refresh(0.0, Learner())
    assert 2 * before[then] < model.index[seldom][then] < 20 * before[then]
    assert model.index[seldom][then + 4] < 2 * model.index[YOUNG][then + 4]


def test_a_lineage_seen_seldom_has_the_shape_of_all_that_was_asked_for_once() -> None:
    index = learned(Parts(), reuse_bucket=10, share=0.5).index[new_class(3, is_last=False)]
    assert index[2] < index[6] < index[9]
    assert index[12] < 0.1 * index[6]


def learned(parts: Parts, reuse_bucket: int, share: float) -> ReuseModel:
    """A thousand blocks; a share of them is asked for again at one age, the others never."""
    model = ReuseModel()
    blocks, reused = 1000, int(1000 * share)
    for _ in range(blocks):
        model.entered(YOUNG)
    for bucket, edge in enumerate(AGE_EDGES, 1):
        model.aged(YOUNG, bucket, blocks)
        for _ in range(AGE_EDGES[bucket] - edge if bucket < len(AGE_EDGES) else 100):
            model.ticked()
        if bucket == reuse_bucket:
            for _ in range(reused):
                model.moved(YOUNG, edge, FIRST_GAP_CLASS)
            blocks -= reused
    model.refresh(0.0, Learner(parts))
    return model


def test_the_index_looks_ahead_to_reuse_and_is_low_behind_it() -> None:
    index = learned(Parts(), reuse_bucket=10, share=0.5).index[YOUNG]
    assert index[2] < index[6] < index[9]
    assert index[12] < 0.1 * index[6]


def test_the_hazard_alone_does_not_look_ahead() -> None:
    hazard = learned(Parts(lookahead=False), reuse_bucket=10, share=0.5).index[YOUNG]
    assert hazard[6] < 0.1 * hazard[10]


def test_chance_of_reuse_is_the_share_that_was_reused() -> None:
    chance = learned(Parts(), reuse_bucket=10, share=0.3).chance[YOUNG]
    assert chance[2] == pytest.approx(0.3, abs=0.06)
    assert chance[14] < 0.06


def test_what_was_learned_fades() -> None:
    model = learned(Parts(), reuse_bucket=10, share=0.5)
    assert model.index[YOUNG][6] > model.index[YOUNG][2]
    learner = Learner()
    for _ in range(5):
        model.refresh(10_000.0, learner)
    assert model.index[YOUNG][6] < model.index[YOUNG][2]


def test_every_block_at_risk_is_remembered_and_counted_once() -> None:
    """The model's blocks at risk are the history's, at their ages, whatever was forgotten meanwhile."""
    model = ReuseModel()
    history = History(model, remembered=3000)
    for number in range(12_000):
        key = number % 5000 if number % 3 else -number
        if number % 64 == 0:
            history.end_tick()
        history.asked(history.blocks.get(key) or history.begin(key, None, False), 1, 0)
    expected = [[0] * BUCKETS for _ in range(CLASSES)]
    for block in history.blocks.values():
        expected[block.kind][bucket_of(history.tick - block.tick)] += 1
    assert model._at_risk == expected
    assert 3000 <= len(history.blocks) <= 3064


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_no_rate_is_above_all_hazards_ahead(share: float) -> None:
    """Not even where nearly nothing survives, and differences are rounding."""
    index = np.array(learned(Parts(), reuse_bucket=3, share=share).index)
    hazard = np.array(learned(Parts(lookahead=False), reuse_bucket=3, share=share).index)
    ahead = np.maximum.accumulate(hazard[:, ::-1], axis=1)[:, ::-1]
    assert (index <= ahead * (1 + 1e-9)).all()
    assert (index >= hazard * (1 - 1e-9)).all()


def test_an_age_that_nothing_reached_is_judged_by_the_ages_before() -> None:
    """Where few blocks came again at any age, those older than the trace are not the best ones."""
    seldom, often = (learned_at_all_ages(share) for share in (0.01, 0.5))
    beyond = bucket_of(200)
    assert seldom.index[YOUNG][beyond] < 0.5 * often.index[YOUNG][beyond]
    assert seldom.index[YOUNG][beyond] < ReuseModel().index[YOUNG][beyond]


def test_blocks_on_their_way_through_an_age_tell_nothing_of_its_end() -> None:
    """All of a loop come again at one age: those that are nearly as old have not yet."""
    entering, leaving, gone = (begun_together(ticks) for ticks in (96, 127, 128))
    bucket = bucket_of(100)
    assert bucket == bucket_of(127) == bucket_of(128) - 1
    assert leaving.index[YOUNG][bucket] == entering.index[YOUNG][bucket]
    assert gone.index[YOUNG][bucket] < 0.5 * leaving.index[YOUNG][bucket]


def begun_together(ticks: int) -> ReuseModel:
    """A hundred blocks were asked for so many ticks ago, and none since."""
    model = ReuseModel()
    history = History(model, remembered=1000)
    for key in range(100):
        history.asked(history.begin(key, None, False), 1, 0)
    for _ in range(ticks):
        history.end_tick()
    model.refresh(0.0, Learner(Parts(lookahead=False)))
    return model


def learned_at_all_ages(share: float) -> ReuseModel:
    """A block comes each tick, and after 1, 2, 3, … 99 ticks that share of what is left comes again."""
    model, left = ReuseModel(), 1000.0
    for age in range(100):
        model._exposure[YOUNG][bucket_of(age)] += left
        model._passed[YOUNG][bucket_of(age)] = left
        model._reuses[YOUNG][bucket_of(age)] += share / 10 * left
        left *= 1 - share / 10
    model.refresh(0.0, Learner())
    return model


@pytest.mark.parametrize("tokens", [16, 48, 500, 2048])
def test_blocks_of_any_size_tell_as_much_as_usual_ones_of_as_many_tokens(tokens: int) -> None:
    chooser = np.random.default_rng(1)
    reuses, exposure, passed = chooser.integers(0, 500, (3, CLASSES, BUCKETS)).astype(float)
    parts = USUAL_BLOCK_TOKENS / tokens
    usual, small = Learner(), Learner(block_tokens=tokens)
    for times in range(1, 4):
        seen = usual.learn(times * reuses, times * exposure, passed, 0.0)
        cut = small.learn(parts * times * reuses, parts * times * exposure, parts * passed, 0.0)
        assert cut[0] == pytest.approx(parts * seen[0])
        assert cut[2] == pytest.approx(seen[2])
        assert cut[3] == pytest.approx(seen[3])


@pytest.mark.parametrize(("blocks", "ticks"), [(10, 64.0), (512, 64.0), (1024, 128.0), (30_000, 3750.0)])
def test_a_small_pool_forgets_sooner(blocks: int, ticks: float) -> None:
    """Over eight times its size, and no sooner than a few hundred requests."""
    reuses = np.ones((CLASSES, BUCKETS))
    faded, *_ = Learner(capacity_blocks=blocks).learn(reuses, reuses, reuses, ticks)
    assert faded == pytest.approx(reuses / np.e)
