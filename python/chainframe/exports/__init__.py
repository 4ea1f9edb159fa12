"""Results of `Query.to_parquet`, `Query.to_csv` and `Query.to_json`, and of `Export.verify`."""

from chainframe.exports.export import Export
from chainframe.exports.layout import Compaction, compact
from chainframe.exports.series import read
from chainframe.exports.verification import Difference, Verification

__all__ = ["Compaction", "Difference", "Export", "Verification", "compact", "read"]
