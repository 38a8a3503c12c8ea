"""A resource detector: which recorded command and process a span comes from.

Enabled by ``OTEL_EXPERIMENTAL_RESOURCE_DETECTORS=otel,spanreplay`` (entry point group ``opentelemetry_resource_detector``).
"""

import os

from opentelemetry.sdk.resources import Resource, ResourceDetector

from spanreplay.exporter import environment_variables as env
from spanreplay.exporter.origin import process_resource
from spanreplay.semconv import attributes as names
from spanreplay.store.process import current_process


class SpanreplayResourceDetector(ResourceDetector):
    """Adds host, process and, inside ``spanreplay record``, the command's id."""

    def detect(self) -> Resource:
        """The attributes of this process."""
        found = process_resource().attributes
        attributes: dict[str, str | int] = {names.PROCESS_ID: current_process().process_id}
        for name in (names.HOST_NAME, names.PROCESS_PID):
            value = found.get(name)
            if isinstance(value, str | int):
                attributes[name] = value
        command = os.environ.get(env.SPANREPLAY_COMMAND_ID)
        if command:
            attributes[names.RUN_COMMAND_ID] = command
        return Resource(attributes)
