"""What happens, counted for Prometheus: names, codes and numbers of ours, never an id and never a text.

With PROMETHEUS_MULTIPROC_DIR set, all processes of a machine count into that folder, and any of them can tell the sums.
"""

from __future__ import annotations

from prometheus_client import Counter, Histogram

REQUESTS = Counter(
    "memberintel_requests", "Answers by route, method and status.", ["route", "method", "status"]
)
REQUEST_SECONDS = Histogram(
    "memberintel_request_seconds",
    "Seconds from a request to its answer, of a stream to its beginning.",
    ["route"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
MODEL_CALLS = Counter(
    "memberintel_model_calls", "Calls of models.", ["purpose", "provider", "model", "outcome"]
)
MODEL_SECONDS = Histogram(
    "memberintel_model_seconds",
    "Seconds a call of a model took.",
    ["purpose"],
    buckets=(0.05, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300),
)
MODEL_TOKENS = Counter("memberintel_model_tokens", "Tokens models read and wrote.", ["purpose", "direction"])
MODEL_MICROS = Counter(
    "memberintel_model_cost_micro_dollars", "What calls of models cost, as far as it is known.", ["purpose"]
)
RUNS = Counter("memberintel_runs", "Runs of the clock's work.", ["kind", "outcome"])
EVENTS = Counter("memberintel_events", "What people and the clock did, by name.", ["event"])
