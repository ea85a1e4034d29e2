"""A table that is not as it was declared is noticed where it comes in, and named."""

from __future__ import annotations

import polars as pl
import pytest

from nous_online.core.errors import Unavailable
from nous_pipelines.phases.phase_table import SCHEMAS
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.snapshots.table_schemas import LINKS

ROWS = pl.DataFrame([("aria", "a", "b", "related", 0.5)], schema=LINKS, orient="row")


def test_a_table_as_declared_comes_through_as_it_is():
    assert LINKS.checked(ROWS) is ROWS
    assert LINKS.checked(ROWS.select("kind"), ["kind"]).columns == ["kind"]
    assert LINKS.empty().schema == ROWS.schema


def test_what_is_declared_of_some_columns_is_what_is_declared_of_them_all():
    some = LINKS.only("weight", "kind")

    assert dict(some) == {"weight": LINKS["weight"], "kind": LINKS["kind"]}
    assert some.meanings == {name: LINKS.meanings[name] for name in some}


@pytest.mark.parametrize(
    ("table", "columns", "complaint"),
    [
        (ROWS.drop("weight"), None, "table links has no column weight"),
        (ROWS.cast({"weight": pl.String}), None, "column weight of table links is String, not Float64"),
        (ROWS.select("kind"), ["kind", "from_id"], "table links has no column from_id"),
    ],
)
def test_the_first_column_that_is_not_as_declared_is_named(table, columns, complaint):
    with pytest.raises(ValueError, match=complaint):
        LINKS.checked(table, columns)


def test_a_file_of_a_night_with_another_table_in_it_says_what_to_do(tmp_path):
    files = NightFiles(tmp_path)
    files.write_table("judgements", SCHEMAS["judgements"].empty().drop("verdict"))

    with pytest.raises(Unavailable, match=r"judgements.parquet in .* no column verdict\); run the night again"):
        files.read_table("judgements")
    assert files.read_table("judgements", columns=["agent_id"]).columns == ["agent_id"]


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_every_column_says_what_it_holds(schema):
    assert list(schema.meanings) == list(schema)
    assert all(told and not told.endswith(".") for told in schema.meanings.values())
