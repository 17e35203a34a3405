"""Reads OTLP requests with OpenTelemetry's published messages.

Each line of standard input is {"signal": "traces" | "metrics", "protobuf": BASE64, "json": OBJECT?}. For each, a line is printed: the
request as JSON with ids in hexadecimal digits; or, if there is JSON as well, whether both say the same.
"""

import base64
import json
import sys

from google.protobuf.json_format import MessageToDict, ParseDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

REQUESTS = {"traces": ExportTraceServiceRequest, "metrics": ExportMetricsServiceRequest}
IDS = {"traceId", "spanId", "parentSpanId"}


def convert_ids(value, convert):
    """The same value, with its ids converted between base64 and hexadecimal digits."""
    if isinstance(value, dict):
        return {key: convert(item) if key in IDS else convert_ids(item, convert) for key, item in value.items()}
    if isinstance(value, list):
        return [convert_ids(item, convert) for item in value]
    return value


def to_hex(text):
    return base64.b64decode(text).hex()


def from_hex(text):
    return base64.b64encode(bytes.fromhex(text)).decode()


for line in sys.stdin:
    given = json.loads(line)
    request = REQUESTS[given["signal"]].FromString(base64.b64decode(given["protobuf"]))
    if "json" in given:
        other = ParseDict(convert_ids(given["json"], from_hex), REQUESTS[given["signal"]]())
        print("same" if other == request else f"different: {request} {other}".replace("\n", " "))
    else:
        print(json.dumps(convert_ids(MessageToDict(request), to_hex)))
