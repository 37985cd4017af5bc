"""The scorecard of reliability, run on your own machine, file system and server.

`holdfast selftest` does this on the command line. It makes stores of its own, never
touches yours, and removes what it made:

>>> from holdfast.testing.trials import selftest
>>> [result] = selftest(stores=["file"], only=["clocks"])
>>> result.verdict, result.wrong
('holds', 0)
"""

from holdfast.testing.trials.processes import Job, Result, run_jobs
from holdfast.testing.trials.scorecard import ROWS, STORES, selftest
from holdfast.testing.trials.task import Effort, NotRun, Row, Target, Task, Trials

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
