"""Inner names of the adapter of Google's ADK."""

from holdfast.adapters.google_adk._sessions import StaleSession
from holdfast.adapters.google_adk._stored_sessions import SessionsQuery, list_sessions
