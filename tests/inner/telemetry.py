"""Inner names of telemetry."""

from holdfast.telemetry._database import attributes_of
