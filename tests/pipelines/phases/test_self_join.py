import tracemalloc

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nous_online.core.errors import InvalidInput
from nous_online.language.minilm import unit_rows
from nous_pipelines.phases.self_join import similar_pairs, similar_pairs_between


def brute_force(rows, threshold):
    similarity = rows.astype(np.float64) @ rows.astype(np.float64).T
    left, right = np.nonzero(np.triu(similarity >= threshold, k=1))
    return list(zip(left.tolist(), right.tolist(), strict=True))


def found(pairs):
    return list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))


def isotropic(rng, rows, width):
    return unit_rows(rng.standard_normal((rows, width), dtype=np.float32))


def clustered(rng, rows, width):
    """Draw a decaying spectrum with tight neighbourhoods, as embeddings of rewordings have."""
    scale = (np.arange(width) + 1.0) ** -0.5
    centres = rng.standard_normal((rows // 4, width)) * scale
    spread = rng.uniform(0.0, 0.9, size=(rows, 1))
    noise = rng.standard_normal((rows, width)) * scale
    return unit_rows((centres[rng.integers(len(centres), size=rows)] + spread * noise).astype(np.float32))


def low_rank(rng, rows, width):
    return unit_rows((rng.standard_normal((rows, 3)) @ rng.standard_normal((3, width))).astype(np.float32))


def repeated(rng, rows, width):
    return isotropic(rng, rows // 40, width)[rng.integers(rows // 40, size=rows)]


@pytest.mark.parametrize("draw", [isotropic, clustered, low_rank, repeated])
@pytest.mark.parametrize("threshold", [0.4, 0.92, 0.999])
def test_finds_exactly_the_pairs_of_brute_force_whatever_the_spectrum(draw, threshold):
    rows = draw(np.random.default_rng(3), 1300, 200)

    pairs = similar_pairs(rows, threshold=threshold)

    assert found(pairs) == brute_force(rows, threshold)


@given(
    seed=st.integers(0, 2**32 - 1), rows=st.integers(4, 60), width=st.integers(1, 20), threshold=st.floats(0.05, 1.0)
)
@settings(max_examples=examples(20), deadline=None)
def test_finds_exactly_the_pairs_of_brute_force_for_small_inputs(seed, rows, width, threshold):
    drawn = clustered(np.random.default_rng(seed), rows, width)

    assert found(similar_pairs(drawn, threshold=threshold, block_rows=16)) == brute_force(drawn, threshold)


@pytest.mark.parametrize("block_rows", [100, 513, 4096])
def test_the_size_of_the_blocks_changes_nothing(block_rows):
    rows = clustered(np.random.default_rng(5), 1500, 64)
    expected = similar_pairs(rows, threshold=0.9)

    pairs = similar_pairs(rows, threshold=0.9, block_rows=block_rows)

    assert found(pairs) == found(expected)
    assert np.array_equal(pairs.similarity, expected.similarity)


def test_reports_the_cosine_of_each_pair():
    rows = clustered(np.random.default_rng(6), 1200, 48)

    pairs = similar_pairs(rows, threshold=0.8)

    expected = np.vecdot(rows[pairs.left].astype(np.float64), rows[pairs.right].astype(np.float64))
    assert len(pairs) > 100
    assert np.array_equal(pairs.similarity, expected.astype(np.float32))


def test_a_pair_exactly_at_the_threshold_belongs_to_the_result():
    rows = np.array([[1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5]], dtype=np.float32)

    assert found(similar_pairs(rows, threshold=0.5)) == [(0, 1)]
    assert found(similar_pairs(rows, threshold=np.nextafter(0.5, 1))) == []


def test_new_rows_meet_known_rows_exactly_as_they_would_in_a_join_of_all():
    rows = clustered(np.random.default_rng(7), 3000, 96)
    fresh, known = rows[1800:], rows[:1800]

    pairs = similar_pairs_between(fresh, known, threshold=0.9)

    expected = sorted((right - 1800, left) for left, right in brute_force(rows, 0.9) if left < 1800 <= right)
    assert len(expected) > 100
    assert found(pairs) == expected


def test_one_new_row_among_many_known_ones_finds_its_likes():
    known = clustered(np.random.default_rng(8), 3000, 96)

    pairs = similar_pairs_between(known[[17]], known, threshold=0.9999)

    assert (0, 17) in found(pairs)


def test_equal_rows_are_all_pairs():
    rows = np.tile(isotropic(np.random.default_rng(9), 1, 64), (1500, 1))

    pairs = similar_pairs(rows, threshold=0.92)

    assert len(pairs) == 1500 * 1499 // 2


def test_a_zero_row_is_similar_to_nothing():
    rows = np.zeros((1400, 64), dtype=np.float32)
    rows[[3, 8]] = isotropic(np.random.default_rng(10), 1, 64)

    assert found(similar_pairs(rows, threshold=0.01)) == [(3, 8)]


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_rows_have_no_pairs(count):
    pairs = similar_pairs(isotropic(np.random.default_rng(11), count, 8), threshold=0.92)

    assert len(pairs) == 0


def test_memory_is_bounded_by_the_blocks_and_not_by_the_square_of_the_rows():
    rows = isotropic(np.random.default_rng(12), 7_000, 96)

    tracemalloc.start()
    similar_pairs(rows, threshold=0.92)
    peak_mb = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()

    assert peak_mb < 48  # the square of 7,000 rows would be 187


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_refuses_vectors_with_nan_or_infinity(poison):
    rows = isotropic(np.random.default_rng(13), 5, 8)
    rows[2, 3] = poison

    with pytest.raises(InvalidInput, match="NaN or infinity"):
        similar_pairs(rows, threshold=0.92)


def test_refuses_rows_that_are_not_of_unit_length():
    with pytest.raises(InvalidInput, match=r"length 2\.0, expected 1"):
        similar_pairs(np.array([[2, 0], [0, 1]], dtype=np.float32), threshold=0.92)


def test_refuses_anything_but_a_matrix():
    with pytest.raises(InvalidInput, match="one vector per row"):
        similar_pairs(np.array([1, 0], dtype=np.float32), threshold=0.92)


def test_refuses_to_compare_rows_of_different_widths():
    with pytest.raises(InvalidInput, match="width 3 cannot be compared with rows of width 2"):
        similar_pairs_between(np.eye(3, dtype=np.float32), np.eye(2, dtype=np.float32), threshold=0.92)


@pytest.mark.parametrize("threshold", [0.0, -0.5, 1.01, float("nan")])
def test_refuses_a_threshold_that_is_no_cosine_worth_joining_at(threshold):
    with pytest.raises(InvalidInput, match="above 0 and at most 1"):
        similar_pairs(np.eye(2, dtype=np.float32), threshold=threshold)
