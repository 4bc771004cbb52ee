"""Print the CPU seconds of the tests by room and of the most expensive tests, with the processes that they start.

python -m pytest -n 0 -p benchmarks.suite_cost            the everyday suite
python -m pytest -n 0 -p benchmarks.suite_cost tests/io   one room

CPU seconds, unlike the clock, change little when other programs use the machine. A process counts when it has ended
before its test has.
"""

import resource
from collections import Counter
from collections.abc import Iterator

import pytest

SHOWN = 30
_seconds: Counter[str] = Counter()


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the processes that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure a test with its fixtures."""
    before = cpu_seconds()
    result = yield
    _seconds[item.nodeid] += cpu_seconds() - before
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print all rooms and the most expensive tests."""
    rooms: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for name, seconds in _seconds.items():
        rooms["/".join(name.partition("::")[0].split("/")[:2])] += seconds
        tests[name.partition("[")[0]] += seconds
    for title, found in (("CPU seconds by room", rooms.most_common()), ("by test", tests.most_common(SHOWN))):
        terminalreporter.section(title)
        for name, seconds in found:
            terminalreporter.line(f"{seconds:8.1f}  {name}")
    whole = f"{cpu_seconds():.0f} CPU seconds in all, {sum(_seconds.values()):.0f} of them in {len(_seconds)} tests"
    terminalreporter.line(f"{whole}; the rest is the start and the collection")
