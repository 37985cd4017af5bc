"""Inner names of `_port`, what a backend has to do."""

from holdfast._port.layer import InspectionLayer
from holdfast._port.removal import FamilyTree, merged, outlined, subtract
