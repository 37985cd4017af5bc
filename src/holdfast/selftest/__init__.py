"""The scorecard of reliability, run on your own machine, file system and server.

`holdfast selftest` does this on the command line. It makes stores of its own, never
touches yours, and removes what it made:

>>> from holdfast.selftest import selftest
>>> [result] = selftest(stores=["file"], only=["clocks"])
>>> result.verdict, result.wrong
('holds', 0)
"""

from holdfast.selftest._processes import Job, Result, run_jobs
from holdfast.selftest._row import Effort, NotRun, Row, Task, Trials
from holdfast.selftest._scorecard import ROWS
from holdfast.selftest._selftest import STORES, selftest
from holdfast.selftest._target import Target

__all__ = [
    "ROWS",
    "STORES",
    "Effort",
    "Job",
    "NotRun",
    "Result",
    "Row",
    "Target",
    "Task",
    "Trials",
    "run_jobs",
    "selftest",
]
