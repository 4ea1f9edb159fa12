"""Exports of lists beyond the result window, which are killed at any request while the list grows, then run again."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from chainframe.exports import Export
from strict_server import Request, Response, StrictServer
from transfers import TOKEN, Transfers, serve

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is Unix's"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore::chainframe.IncompleteResultWarning"),
]


class Killing:
    """Serves the transfers, and kills a child process in place of the response to its n-th request."""

    def __init__(self, server: StrictServer, transfers: Transfers, directory: Path) -> None:
        self.transfers, self.directory = transfers, directory
        self.client = serve(server, transfers, concurrency=2)
        server.on("token_transfers", self.respond)
        self.child = 0
        self.left = 0
        self.lock = threading.Lock()

    def respond(self, request: Request) -> Response:
        with self.lock:
            self.left -= 1
            if self.left == 0 and self.child:
                os.kill(self.child, signal.SIGKILL)
            return self.transfers.respond(request)

    def export(self) -> Export:
        query = self.client.token_transfers(TOKEN, page_size=20)
        return query.to_parquet(self.directory, max_rows_per_file=20)

    def export_and_die(self, requests: int) -> bool:
        """Export in a child process; True if it was killed."""
        with self.lock:
            self.left = requests
            self.child = os.fork()
            if self.child == 0:
                try:
                    self.export()
                    os._exit(0)
                finally:
                    os._exit(1)
        _, status = os.waitpid(self.child, 0)
        self.child = 0
        code = os.waitstatus_to_exitcode(status)
        assert code in {0, -signal.SIGKILL}
        return code != 0

    def check(self) -> bool:
        """Finish the export; True if it is complete. It has the list as it was at one moment, or its beginning."""
        export = self.export()
        table = pq.read_table(self.directory, columns=["tx_id", "block_hash"])
        found = Counter(zip(*(table[name].to_pylist() for name in ("tx_id", "block_hash")), strict=True))
        assert export.rows == table.num_rows
        if export.complete:
            assert any(found == Counter(state) for state in self.transfers.states)
        else:
            # It was killed near the window, from which the list has grown.
            assert "can be paged through" in export.report.reasons[0]
            assert any(found <= Counter(state) for state in self.transfers.states)
        return export.complete


@pytest.mark.parametrize("growth", [0, 0.3])
def test_divided_export_killed_at_any_request_is_complete_after_the_next_run(
    server: StrictServer, tmp_path: Path, growth: float
) -> None:
    died = complete = 0
    numbers = range(1, 40, 3)
    for requests in numbers:
        killing = Killing(server, Transfers(5, 180, growth=growth), tmp_path / str(requests))
        died += killing.export_and_die(requests)
        complete += killing.check()
    assert died > 5
    assert complete == len(numbers) or growth
    assert complete > died / 2


def test_divided_export_killed_repeatedly_has_each_record_once(server: StrictServer, tmp_path: Path) -> None:
    for seed in range(3):
        chance = random.Random(seed)
        killing = Killing(server, Transfers(seed, 260), tmp_path / str(seed))
        died = 0
        # Later kills leave more requests, so that it ends.
        while killing.export_and_die(chance.randint(2, 12) + died):
            died += 1
        assert killing.check()
        assert died > 2
