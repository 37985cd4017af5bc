"""Inner names of telemetry."""

from holdfast.telemetry._telemetry import attributes_of
