"""When a store has telemetry, and what it costs when it has none: nothing."""

import subprocess
import sys

import pytest

import holdfast
from holdfast import Unstorable
from inner.api import AsyncRunner, Runner
from support.effort import QUICK

SET_UP = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
"""
SAVE = """
with holdfast.open(":memory:", **options) as store:
    {before}
    store.thread("chat").save({{}})
print(len(spans.get_finished_spans()))
"""


def printed(program):
    if QUICK:
        pytest.skip("starts processes: make test")
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import sys, holdfast\n{program}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return ran.stdout.strip()


def test_a_program_that_set_a_provider_gets_spans_unless_it_declines():
    program = SET_UP + "trace.set_tracer_provider(provider)\n"
    program += "options = {}" + SAVE.format(before="pass")
    program += "options = {'telemetry': False}" + SAVE.format(before="pass")

    assert printed(program) == "1\n1"


def test_a_provider_that_is_set_later_counts_only_if_telemetry_is_asked_for():
    later = "trace.set_tracer_provider(provider)"
    program = SET_UP + "options = {'telemetry': True}" + SAVE.format(before=later)

    assert printed(program) == "1"

    program = SET_UP + "options = {}" + SAVE.format(before=later)

    assert printed(program) == "0"


def test_without_telemetry_nothing_of_it_is_imported():
    program = """
with holdfast.open(":memory:") as store:
    store.thread("chat").save({})
print([m for m in sys.modules if "telemetry" in m])
"""

    assert printed(program) == "[]"


def test_without_the_extra_stores_work_and_asking_for_telemetry_is_refused():
    program = """
sys.modules["opentelemetry"] = None
with holdfast.open(":memory:") as store:
    print(store.thread("chat").save({}).step)
try:
    holdfast.open(":memory:", telemetry=True)
except holdfast.Unsupported as error:
    print(error.code, "holdfast[otel]" in str(error))
"""

    assert printed(program) == "1\nmissing_extra True"


def test_a_store_without_telemetry_has_the_plain_runners():
    with holdfast.open(":memory:", telemetry=False) as store:
        assert type(store.runner) is Runner
        assert type(store.runner.for_async()) is AsyncRunner


@pytest.mark.parametrize("wrong", ["yes", 1, object()])
def test_what_is_no_telemetry_is_refused(wrong):
    with pytest.raises(Unstorable, match="telemetry"):
        holdfast.open(":memory:", telemetry=wrong)
