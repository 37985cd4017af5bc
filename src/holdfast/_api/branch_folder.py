"""A folder of its own for each branch of an exploration that has a workspace."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from typing import Any, Protocol, runtime_checkable

from holdfast._engine.threads.explore import ExplorationPlan
from holdfast._values.os_errors import writing
from holdfast.errors import Unstorable, Unsupported

# Beside what a workspace keeps for itself, so that no snapshot has it.
PLACE = (".holdfast", "branches")


@runtime_checkable
class RestorableFolder(Protocol):
    """A folder that belongs to a state, such as a `Workspace`."""

    @property
    def path(self) -> str:
        """The path of the folder."""
        ...

    # The overloads of `Workspace` for both APIs.
    def restore(self, thread: Any, ref: Any, **how: Any) -> Any:
        """Write the files of a checkpoint."""
        ...


def checked_workspace(value: object) -> RestorableFolder | None:
    """A workspace if it is one; refuses any other value."""
    if value is None or isinstance(value, RestorableFolder):
        return value
    kind = type(value).__name__
    raise Unstorable("workspace", f"must be a Workspace, not {kind}")


class BranchFolder:
    """The folder of a branch, with the files of the checkpoint that is explored."""

    def __init__(
        self, workspace: RestorableFolder, plan: ExplorationPlan, number: int
    ) -> None:
        self._workspace, self._at = workspace, plan.at
        name = _file_name(f"{plan.thread}/{plan.name}")
        self.path = os.path.join(workspace.path, *PLACE, name, str(number))
        # A folder that a kill left unfinished has this name, and is made again.
        self._unfinished = f"{self.path}.new"
        self._refuse_links(os.path.join(*PLACE, name))

    def _refuse_links(self, place: str) -> None:
        """A folder can come from anywhere: what is ours must not lead out of it."""
        inside = os.path.join(os.path.realpath(self._workspace.path), place)
        for path in (self.path, self._unfinished):
            if os.path.dirname(os.path.realpath(path)) != inside:
                raise Unsupported(
                    f"{path} leads to another folder; move it away",
                    code="workspace_blocked",
                )

    @property
    def is_there(self) -> bool:
        """True if it was made before: then the branch goes on with what is in it."""
        return os.path.isdir(self.path)

    def writing(self, thread: Any) -> Any:
        """Begin to write the files; the result may have to be awaited."""
        shutil.rmtree(self._unfinished, ignore_errors=True)
        return self._workspace.restore(thread, self._at, into=self._unfinished)

    def finish(self) -> None:
        """Give the folder its name, now that all files are there."""
        with writing(self.path):
            os.rename(self._unfinished, self.path)

    def opened(self) -> Any:
        """The folder as a workspace, to save with ``files=``."""
        kind: Any = type(self._workspace)
        return kind(self.path)


def _file_name(text: str) -> str:
    """A text as the name of a folder: readable, and another one for another text."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{re.sub('[^A-Za-z0-9._-]+', '-', text)[:100]}-{digest}"
