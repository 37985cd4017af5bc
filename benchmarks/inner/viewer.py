"""The inner names of the viewer that benchmarks use."""

from holdfast.viewer.reading import READINGS, query_of
from holdfast.views.showing import Showing
