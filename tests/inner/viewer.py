"""Inner names of the viewer and its server; needs starlette."""

from holdfast._http import SignalFreeServer, bound
from holdfast.viewer import ViewerOptions, joining
from holdfast.viewer.app import PATH, Viewer
from holdfast.viewer.condition import open_without_key
from holdfast.viewer.reading import READINGS, query_of
from holdfast.viewer.steering import STEERINGS
