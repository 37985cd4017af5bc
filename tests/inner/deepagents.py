"""Inner names of the adapter of deepagents."""

from holdfast.adapters.deepagents import _search as search
