"""Traces and metrics for OpenTelemetry. Needs the extra `otel`; the exporter is that of the application.

>>> from chainframe.integrations import otel
>>> otel.instrument()
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chainframe._arguments import suggesting
from chainframe._native import __version__, _set_telemetry

try:
    from opentelemetry import context as otel_context
    from opentelemetry import metrics, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
except ModuleNotFoundError as _error:
    _message = "opentelemetry is not installed; run: pip install 'chainframe[otel]'"
    raise ModuleNotFoundError(_message, name=_error.name) from None

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider
    from opentelemetry.util.types import AttributeValue

    from chainframe import Attempt, Report

__all__ = ["instrument", "uninstrument"]

THROTTLED = 429
FIRST_ERROR = 400


@suggesting
def instrument(*, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None) -> None:
    """Report every run of a query and every attempt of a request of this process, of all clients.

    A run is a span `chainframe.<call>` with the number of records, pages, requests and retries and whether the result
    is complete; its parent is the span that is current where the run begins. Each attempt is a client span `GET <path>`
    below it, by the semantic conventions for HTTP. No attribute has a value of a parameter, or a secret.

    The metrics are `http.client.request.duration`, `chainframe.requests`, `chainframe.throttles`,
    `chainframe.rate_limit` and `chainframe.request.wait`. A second call replaces the providers.

    Parameters
    ----------
    tracer_provider : opentelemetry.trace.TracerProvider, optional
        Default: the global one.
    meter_provider : opentelemetry.metrics.MeterProvider, optional
        Default: the global one.

    Examples
    --------
    >>> otel.instrument()
    >>> with tracer.start_as_current_span("nightly export"):
    ...     client.transactions().to_parquet("transactions")
    """
    telemetry = _Telemetry(
        trace.get_tracer("chainframe", __version__, tracer_provider),
        metrics.get_meter("chainframe", __version__, meter_provider),
    )
    _set_telemetry((telemetry.begin, telemetry.attempt))


def uninstrument() -> None:
    """Stop reporting. Runs in progress end their spans.

    Examples
    --------
    >>> otel.uninstrument()
    """
    _set_telemetry(None)


class _Telemetry:
    def __init__(self, tracer: trace.Tracer, meter: metrics.Meter) -> None:
        self._tracer = tracer
        self._duration = meter.create_histogram(
            "http.client.request.duration", unit="s", description="Duration of HTTP client requests."
        )
        self._requests = meter.create_counter("chainframe.requests", unit="{request}", description="Attempts sent.")
        self._throttles = meter.create_counter(
            "chainframe.throttles", unit="{response}", description="Responses that report a rate limit."
        )
        self._wait = meter.create_histogram(
            "chainframe.request.wait", unit="s", description="Wait for the rate limiter and for concurrency."
        )

        self._rate = meter.create_gauge(
            "chainframe.rate_limit", unit="{request}/s", description="Rate that the rate limiter allows."
        )

    def begin(self, call: str) -> tuple[contextvars.Context, Callable[[tuple[Report, Exception | None]], None]]:
        """Begins the span of a run. Returns the context of its attempts and a function that ends it."""
        span = self._tracer.start_span(f"chainframe.{call}", attributes={"chainframe.call": call})
        context = contextvars.copy_context()
        context.run(otel_context.attach, trace.set_span_in_context(span))
        return context, lambda result: _end(span, *result)

    def attempt(self, attempt: Attempt) -> None:
        """Reports one attempt, in the context of its run."""
        url = urlsplit(attempt.url)
        shared: dict[str, AttributeValue] = {
            "http.request.method": "GET",
            "server.address": url.hostname or "",
            "url.template": url.path,
        }
        if url.port is not None:
            shared["server.port"] = url.port
        if attempt.status is not None:
            shared["http.response.status_code"] = attempt.status
        failed = attempt.error or (str(attempt.status) if (attempt.status or 0) >= FIRST_ERROR else None)
        # The API reports some errors with HTTP status 200.
        failed = failed or (attempt.code if attempt.code not in {None, "0"} else None)
        if failed:
            shared["error.type"] = failed
        start = round(attempt.started.timestamp() * 1e9)
        span = self._tracer.start_span(
            f"GET {url.path}",
            kind=SpanKind.CLIENT,
            start_time=start,
            attributes={**shared, "url.full": attempt.url, **_details(attempt)},
        )
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(start + round(attempt.elapsed * 1e9))
        call: dict[str, AttributeValue] = {"chainframe.call": attempt.endpoint}
        self._duration.record(attempt.elapsed, shared)
        self._requests.add(1, call)
        self._wait.record(attempt.waited, call)
        if attempt.status == THROTTLED:
            self._throttles.add(1, call)
        if attempt.rate is not None:
            self._rate.set(attempt.rate, {"server.address": url.hostname or ""})


def _details(attempt: Attempt) -> dict[str, AttributeValue]:
    """Attributes of a span that are too fine for a metric."""
    details: dict[str, AttributeValue] = {
        "chainframe.call": attempt.endpoint,
        "chainframe.wait": attempt.waited,
        "http.response.body.size": attempt.bytes,
    }
    if attempt.number > 1:
        details["http.request.resend_count"] = attempt.number - 1
    if attempt.code is not None:
        details["chainframe.code"] = attempt.code
    if attempt.replayed:
        details["chainframe.replayed"] = True
    return details


def _end(span: Span, report: Report, error: Exception | None) -> None:
    span.set_attributes(
        {
            "chainframe.records": report.records,
            "chainframe.pages": report.pages,
            "chainframe.requests": report.requests,
            "chainframe.retries": report.retries,
            "chainframe.complete": report.complete and error is None,
        }
    )
    if error is not None:
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(Status(StatusCode.ERROR))
    span.end()
