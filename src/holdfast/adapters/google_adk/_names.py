"""The names of the threads that apps, users, sessions and artifacts have."""

from __future__ import annotations

from typing import NamedTuple

SESSION = "adk"
APP = "adk-app"
USER = "adk-user"
ARTIFACT = "adk-artifact"
MEMORY = "adk-memory"

# This part of a name replaces the id of a session for artifacts of a user.
OF_USER = "user"
OF_SESSION = "session:"
USER_FILE = "user:"


def escaped(part: str) -> str:
    """A part of a name, without the slash that stands between parts."""
    return part.replace("%", "%25").replace("/", "%2F")


def unescaped(part: str) -> str:
    """The part as it was before `escaped`."""
    return part.replace("%2F", "/").replace("%25", "%")


def name_of(kind: str, *parts: str) -> str:
    """The name of a thread; with "" as the last part, the prefix of such names."""
    return f"{kind}:{'/'.join(map(escaped, parts))}"


def parts_of(name: str) -> list[str]:
    """The parts that a name was made of."""
    return [unescaped(part) for part in name.partition(":")[2].split("/")]


def session_thread(app_name: str, user_id: str, session_id: str) -> str:
    """The name of the thread that holds a session, for `holdfast.Store.thread`."""
    return SessionKey(app_name, user_id, session_id.strip()).thread


class SessionKey(NamedTuple):
    """The identity of a session, and the names of its threads."""

    app: str
    user: str
    session: str

    @property
    def thread(self) -> str:
        return name_of(SESSION, *self)

    @property
    def app_thread(self) -> str:
        return name_of(APP, self.app)

    @property
    def user_thread(self) -> str:
        return name_of(USER, self.app, self.user)


class ArtifactKey(NamedTuple):
    """The identity of an artifact; ``session`` is ``None`` for one of the user."""

    app: str
    user: str
    session: str | None
    file: str

    @classmethod
    def of(cls, app: str, user: str, session: str | None, file: str) -> ArtifactKey:
        """An artifact as the framework names it."""
        if session is not None and not file.startswith(USER_FILE):
            return cls(app, user, session, file)
        return cls(app, user, None, USER_FILE + file.removeprefix(USER_FILE))

    @property
    def thread(self) -> str:
        """The name of its thread; without a file, the prefix of all in its place."""
        return name_of(ARTIFACT, self.app, self.user, self._scope, self.file)

    @property
    def _scope(self) -> str:
        return OF_USER if self.session is None else OF_SESSION + self.session
