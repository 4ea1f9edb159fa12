"""Results of `Query.to_parquet`, `Query.to_csv` and `Query.to_json`."""

from chainframe.exports.parquet import Export

__all__ = ["Export"]
