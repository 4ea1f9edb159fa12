"""OpenTelemetry: spans of runs and attempts, their parents, and metrics."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

import chainframe as cf
from chainframe.integrations import otel
from chainframe.testing import Cassette, Fault, LocalService

PROVIDER = TracerProvider()
EXPORTER = InMemorySpanExporter()
PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))
TRACER = PROVIDER.get_tracer("test")
FAULTS: list[Fault] = [
    {"kind": "status", "status": 503, "code": "50001", "times": 1},
    {"kind": "throttle", "every": 5, "times": 6},
    {"kind": "reset", "every": 4, "times": 8},
]


@pytest.fixture
def reader() -> Iterator[InMemoryMetricReader]:
    EXPORTER.clear()
    made = InMemoryMetricReader()
    otel.instrument(tracer_provider=PROVIDER, meter_provider=MeterProvider([made]))
    yield made
    otel.uninstrument()


@pytest.fixture
def spans(reader: InMemoryMetricReader) -> Callable[[], tuple[list[ReadableSpan], list[ReadableSpan]]]:
    """Return the spans of runs and those of attempts since the test began."""
    del reader

    def finished() -> tuple[list[ReadableSpan], list[ReadableSpan]]:
        # A run reports its end before its result is returned; a stream that is dropped, soon after.
        done = EXPORTER.get_finished_spans()
        runs = [span for span in done if span.name.startswith("chainframe.")]
        return runs, [span for span in done if span.kind is SpanKind.CLIENT]

    return finished


Spans = Callable[[], tuple[list[ReadableSpan], list[ReadableSpan]]]


def of(span: ReadableSpan, name: str, default: Any = None) -> Any:
    """An attribute of a span."""
    return (span.attributes or {}).get(name, default)


def parent(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def values(reader: InMemoryMetricReader) -> dict[str, float]:
    data = reader.get_metrics_data()
    assert data is not None
    made: dict[str, float] = {}
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        points: list[Any] = list(metric.data.data_points)
        counts: list[Any] = [point.value if hasattr(point, "value") else point.count for point in points]
        made[metric.name] = sum(counts)
    return made


def test_attempt_spans_are_the_requests_of_the_report_and_of_the_server(
    spans: Spans, reader: InMemoryMetricReader
) -> None:
    with LocalService(transactions=300, faults=FAULTS) as service, service.client(rate_limit=500) as client:
        with TRACER.start_as_current_span("job") as job:
            records = client.transactions().collect()
        runs, attempts = spans()
        assert len(attempts) == records.report.requests == service.request_count
        assert sorted(of(span, "http.response.status_code", 0) for span in attempts) == sorted(
            entry["status"] for entry in service.request_log
        )
        (run,) = runs
        assert run.name == "chainframe.transactions"
        assert parent(run) == job.get_span_context().span_id
        assert {parent(span) for span in attempts} == {run.context.span_id if run.context else None}
        assert run.attributes == {
            "chainframe.call": "transactions",
            "chainframe.records": len(records),
            "chainframe.pages": records.report.pages,
            "chainframe.requests": records.report.requests,
            "chainframe.retries": records.report.retries,
            "chainframe.complete": True,
        }
        resent = [span for span in attempts if of(span, "http.request.resend_count")]
        assert len(resent) == records.report.retries > 0
        first = next(span for span in attempts if of(span, "http.response.status_code") == 503)
        assert first.name == "GET /api/v5/main/transaction/transaction-list"
        assert not first.status.is_ok
        assert of(first, "error.type") == "503"
        assert (first.end_time or 0) > (first.start_time or 0)
        measured = values(reader)
        throttles = sum(entry["status"] == 429 for entry in service.request_log)
        assert measured == {
            "http.client.request.duration": len(attempts),
            "chainframe.requests": len(attempts),
            "chainframe.throttles": throttles,
            "chainframe.rate_limit": 500,
            "chainframe.request.wait": len(attempts),
        }
        assert throttles > 0


def test_parents_are_right_in_threads_and_tasks(service: LocalService, spans: Spans) -> None:
    calls = ("blocks", "tokens", "transactions") * 3

    async def run(client: cf.Client) -> None:
        async def one(call: str) -> None:
            with TRACER.start_as_current_span(call):
                await getattr(client, call)(max_items=120).collect_async()

        await asyncio.gather(*(one(call) for call in calls))

    def in_thread(call: str) -> None:
        with TRACER.start_as_current_span(call):
            getattr(client, call)(max_items=120).collect()

    with service.client() as client:
        asyncio.run(run(client))
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(in_thread, calls))
    runs, attempts = spans()
    names = {span.context.span_id: span.name for span in EXPORTER.get_finished_spans() if span.context}
    assert len(runs) == 18
    assert len(attempts) >= 18
    assert all(names[parent(run) or 0] == run.name.removeprefix("chainframe.") for run in runs)
    for attempt in attempts:
        assert names[parent(attempt) or 0] == f"chainframe.{of(attempt, 'chainframe.call')}"


def test_each_way_to_run_a_query_is_one_span(service: LocalService, spans: Spans, tmp_path: Path) -> None:
    async def streamed(client: cf.Client) -> None:
        async for _ in client.blocks(max_items=150):
            pass

    with service.client() as client:
        query = client.blocks(max_items=150)
        ways: list[Callable[[], Any]] = [
            query.collect,
            query.first,
            query.to_pandas,
            lambda: list(query),
            lambda: list(query.pages()),
            lambda: list(query.batches(40)),
            lambda: query.to_arrow_batch_reader().read_all(),
            lambda: query.to_parquet(tmp_path / "blocks"),
            lambda: asyncio.run(streamed(client)),
        ]
        for number, way in enumerate(ways, 1):
            way()
            client.blocks(height=1).collect()
            assert len(spans()[0]) == 2 * number
    runs, attempts = spans()
    ids = {run.context.span_id for run in runs if run.context}
    assert {parent(attempt) for attempt in attempts} == ids


def test_failed_run_has_the_class_of_its_error(spans: Spans) -> None:
    faults: list[Fault] = [{"kind": "status", "status": 401, "code": "50103"}]
    with LocalService(transactions=5, faults=faults) as service, pytest.raises(cf.AuthenticationError):
        service.client().blocks().collect()
    (run,), (attempt,) = spans()
    assert run.attributes is not None
    assert run.attributes["error.type"] == "AuthenticationError"
    assert run.attributes["chainframe.complete"] is False
    assert not run.status.is_ok
    assert of(attempt, "error.type") == "401"


def test_no_attribute_has_a_secret_or_a_parameter(service: LocalService, spans: Spans) -> None:
    with service.client() as client:
        client.token_transfers("0xC0FFEE", min_amount="123.456").collect()
        with pytest.raises(cf.ServiceError):
            service.client(api_key="WRONG-KEY").blocks().collect()
    runs, attempts = spans()
    shown = "".join(span.to_json() for span in [*runs, *attempts]).lower()
    assert "token-list" in shown or "transaction-list" in shown
    secrets = (service.api_key, service.secret_key, service.passphrase, "wrong-key", "c0ffee", "123.456")
    assert [secret for secret in secrets if secret.lower() in shown] == []


def in_child(client: cf.Client, queue: Any) -> None:
    EXPORTER.clear()
    client.blocks(height=2).collect()
    queue.put(
        [(span.name, parent(span), span.context and span.context.span_id) for span in EXPORTER.get_finished_spans()]
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it needs fork")
def test_spans_of_a_forked_child_have_their_parent(service: LocalService, spans: Spans) -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with service.client() as client, TRACER.start_as_current_span("job") as job:
        iterator = iter(client.blocks(max_items=250))
        next(iterator)
        child = context.Process(target=in_child, args=(client, queue))
        child.start()
        found = queue.get(timeout=30)
        child.join()
        assert len(list(iterator)) == 249
    run = next(one for one in found if one[0] == "chainframe.blocks")
    assert run[1] == job.get_span_context().span_id
    attempts = [one for one in found if one[0].startswith("GET")]
    assert attempts
    assert {one[1] for one in attempts} == {run[2]}
    assert len(spans()[0]) == 1


def test_replays_are_marked(service: LocalService, spans: Spans, tmp_path: Path) -> None:
    with service.client(cassette=Cassette(tmp_path / "c.jsonl")) as client:
        client.blocks(height=1).collect()
    with cf.Client(cassette=Cassette(tmp_path / "c.jsonl", "none")) as client:
        client.blocks(height=1).collect()
    replayed = [of(span, "chainframe.replayed", default=False) for span in spans()[1]]
    assert replayed == [False] * (len(replayed) // 2) + [True] * (len(replayed) // 2)


def test_nothing_is_reported_before_and_after(service: LocalService) -> None:
    EXPORTER.clear()
    seen: list[cf.Attempt] = []
    with service.client(on_attempt=seen.append) as client:
        client.blocks(height=1).collect()
        otel.instrument(tracer_provider=PROVIDER)
        client.blocks(height=1).collect()
        otel.uninstrument()
        client.blocks(height=1).collect()
    names = [span.name for span in EXPORTER.get_finished_spans()]
    assert names.count("chainframe.blocks") == 1
    assert len(seen) == 3 * (len(names) - 1)
