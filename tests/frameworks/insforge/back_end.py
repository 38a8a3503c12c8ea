"""A stand-in for the back end of the platform, as far as its MCP server asks it in the test: tables, buckets, health, usage."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from recordings.servers import Loopback, Reply

_CREATE = re.compile(r"CREATE TABLE (\w+) \((.+)\)")


@contextmanager
def back_end(key: str) -> Iterator[tuple[str, list[str]]]:
    """A server, its address and what it was asked, as method and path.

    Args:
        key: without which nothing but its health is told.
    """
    asked: list[str] = []
    tables: dict[str, str] = {}
    buckets: list[str] = []

    def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        place = urlsplit(path).path
        asked.append(f"{method} {place}")
        given = json.loads(body) if body else {}
        match method, place.split("/")[2:]:
            case "GET", ["health"]:
                return _ok({"status": "ok", "version": "2.1.0"})
            case _ if headers.get("x-api-key") != key:
                return _failed(401, "AUTH_UNAUTHORIZED", "no such key")
            case "GET", ["metadata"]:
                return _ok({"database": {"tables": sorted(tables)}, "storage": {"buckets": buckets}})
            case "GET", ["metadata", table] if table in tables:
                return _ok({"table": table, "columns": tables[table]})
            case "GET", ["metadata", table]:
                return _failed(404, "NOT_FOUND", f"there is no table {table}")
            case "POST", ["database", "advance", "rawsql"]:
                made = _CREATE.match(given["query"])
                if made is not None:
                    tables[made[1]] = made[2]
                return _ok({"rows": [], "rowCount": 0})
            case "POST", ["storage", "buckets"]:
                buckets.append(given["bucketName"])
                return _ok({"message": "Bucket created", "bucketName": given["bucketName"]})
            case "POST", ["usage", "mcp"]:
                return _ok({"success": True})
        return _failed(404, "NOT_FOUND", f"the stand-in has no {method} {place}")

    with Loopback(answer) as server:
        yield server.url, asked


def _ok(document: object) -> Reply:
    return 200, "application/json", json.dumps(document).encode()


def _failed(status: int, code: str, message: str) -> Reply:
    return status, "application/json", json.dumps({"error": code, "message": message, "statusCode": status}).encode()
