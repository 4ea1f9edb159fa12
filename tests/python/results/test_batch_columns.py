"""`query.batches(columns=...)`: records with some of their columns."""

import pickle
from typing import Any

import pyarrow as pa
import pytest

import chainframe as cf
from chainframe.testing import LocalService


@pytest.fixture(scope="module")
def batch(service: LocalService) -> cf.Records[cf.Block]:
    with service.client(rate_limit=None) as client:
        return next(client.blocks(max_items=8).batches(5, columns=["miner", "height"]))


@pytest.fixture(scope="module")
def blocks(service: LocalService) -> cf.Records[cf.Block]:
    with service.client(rate_limit=None) as client:
        return client.blocks(max_items=5).collect()


def test_batches_have_the_selected_columns(batch: cf.Records[cf.Block], blocks: cf.Records[cf.Block]) -> None:
    rows = [{"height": block.height, "miner": block.miner} for block in blocks]
    assert batch.schema.names == ["height", "miner"]
    assert batch.to_dicts() == rows
    assert batch.to_dicts(json=True) == rows
    assert batch["height"] == blocks["height"]
    assert batch[1:3].to_dicts() == rows[1:3]
    assert batch[0:0].schema == batch.schema
    assert "5 rows of Block, 2 columns" in batch._repr_html_()
    assert "block_time" not in batch._repr_html_() + batch[0]._repr_html_() + repr(batch[0])


def test_batch_of_a_running_query_is_not_called_incomplete(service: LocalService) -> None:
    with service.client(rate_limit=None) as client:
        batch = next(client.blocks().batches(batch_size=10))
    assert repr(batch) == "<Records of Block: 10 rows, run not finished>"
    assert "run not finished: " in batch._repr_html_()


def test_frames_of_batches_have_the_selected_columns(batch: cf.Records[cf.Block], blocks: cf.Records[cf.Block]) -> None:
    expected = blocks.to_arrow(columns=["height", "miner"])
    assert batch.to_arrow().equals(expected)
    assert pa.table(batch).equals(expected)
    sources: list[Any] = [batch, batch.schema]
    assert [pa.schema(source) for source in sources] == [expected.schema] * 2
    assert list(batch.to_pandas()) == batch.to_polars().columns == ["height", "miner"]
    assert batch.to_arrow(columns=["miner"]).equals(expected.select(["miner"]))
    with pytest.raises(cf.InvalidParameterError, match=r"^columns must be among height, miner; got \"size\""):
        batch.to_arrow(columns=["size"])


def test_other_columns_are_an_error(batch: cf.Records[cf.Block]) -> None:
    with pytest.raises(AttributeError, match=r"^block_time was not read; name it in batches\(columns=\[\.\.\.\]\)$"):
        _ = batch[0].block_time
    with pytest.raises(KeyError, match=r"Block has no column .*block_time.*; it has height, miner"):
        batch["block_time"]


def test_records_with_some_columns_differ_from_whole_ones(
    batch: cf.Records[cf.Block], blocks: cf.Records[cf.Block]
) -> None:
    assert batch != blocks
    assert batch[0] != blocks[0]
    assert batch[0] != cf.Block(height=batch[0].height, miner=batch[0].miner)
    assert batch[0] in batch


def test_pickled_records_keep_their_columns(batch: cf.Records[cf.Block]) -> None:
    for value in (batch, batch[0], batch.schema):
        assert pickle.loads(pickle.dumps(value)) == value
    with pytest.raises(AttributeError, match="was not read"):
        _ = pickle.loads(pickle.dumps(batch))[0].block_time


def test_selection_of_every_column_is_the_whole_record(service: LocalService, blocks: cf.Records[cf.Block]) -> None:
    with service.client(rate_limit=None) as client:
        (batch,) = client.blocks(max_items=5).batches(columns=blocks.schema.names)
    assert batch == blocks


def test_columns_are_checked_before_a_request(service: LocalService) -> None:
    with service.client() as client:
        before = service.request_count
        with pytest.raises(cf.InvalidParameterError, match='got "sizes"'):
            client.blocks().batches(columns=["sizes"])
        with pytest.raises(cf.InvalidParameterError, match='got "height" twice'):
            client.blocks().batches(columns=["height", "height"])
        assert service.request_count == before
