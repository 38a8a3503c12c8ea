"""Errors that are more than a message: responses of HTTP clients, objects as attributes, classes that cannot be made again."""

import email.message
import io
import json
import socket
import urllib.error
import urllib.request
from contextlib import closing
from http.client import HTTPResponse
from typing import Any

import pytest
import requests

from spanreplay.boundary import http_errors
from spanreplay.content.codec import RecordedError, decode_exception, encode_exception
from spanreplay.instrumentation import tool
from support.taped import recorded


class Reply:
    def __init__(self, status: int) -> None:
        self.status = status


class ApiError(Exception):
    def __init__(self, message: str, reply: object) -> None:
        super().__init__(message)
        self.reply = reply


class AsksItsReply(ApiError):
    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["reply"], name)


class Slotted(Exception):
    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        self.code = code


def answer(body: bytes, *headers: str) -> HTTPResponse:
    """A response as it is when its headers have been read: the body waits on the connection."""
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        theirs.sendall("\r\n".join(["HTTP/1.1 404 Not Found", *headers, "", ""]).encode() + body)
        response = HTTPResponse(ours)
        theirs.close()
        response.begin()
    return response


def not_found(response: HTTPResponse) -> urllib.error.HTTPError:
    return urllib.error.HTTPError("http://localhost/x", 404, "Not Found", response.headers, response)


def of_requests(**more: Any) -> requests.Response:
    response = requests.Response()
    response.status_code, response.reason, response.url, response.encoding = 429, "Too Many", "http://localhost/x", "utf-8"
    response.headers.update({"Retry-After": "3"})
    response.request = requests.Request("POST", "http://localhost/x", headers={"X-A": "1"}, data={"a": "b"}).prepare()
    for name, item in more.items():
        setattr(response, name, item)
    return response


def test_an_error_of_requests_keeps_response_and_request() -> None:
    with pytest.raises(requests.HTTPError) as caught:
        of_requests(_content='{"why": "é"}'.encode(), _content_consumed=True).raise_for_status()
    encoded = encode_exception(caught.value)
    again: Any = decode_exception(encoded.text)
    assert (encoded.lossy, encoded.lost) == (False, ())
    assert type(again).__mro__ == requests.HTTPError.__mro__
    response = again.response
    assert (response.status_code, response.reason, response.url, response.encoding) == (429, "Too Many", "http://localhost/x", "utf-8")
    assert (response.json(), response.headers["retry-after"]) == ({"why": "é"}, "3")
    assert (again.request.method, again.request.body, again.request.headers["x-a"]) == ("POST", "a=b", "1")
    assert str(again) == str(caught.value)


def test_a_response_of_requests_that_nobody_has_read_is_left_so() -> None:
    raw = io.BytesIO(b"later")
    response = of_requests(raw=raw)
    encoded = encode_exception(requests.HTTPError("no", response=response))
    assert encoded.lost == ("response, its body, which nobody had read",)
    assert response.content == b"later"
    again: Any = decode_exception(encoded.text)
    assert (again.response.status_code, again.response.content) == (429, b"")


@pytest.mark.parametrize(
    ("sent", "headers", "body"),
    [
        (b"not here", ["Content-Length: 8", "X-A: 1"], b"not here"),
        (b"4\r\nnot \r\n4\r\nhere\r\n0\r\n\r\n", ["Transfer-Encoding: chunked", "X-A: 1"], b"not here"),
        (b"to the end", ["X-A: 1"], b"to the end"),
        (b"", ["Content-Length: 0", "X-A: 1"], b""),
    ],
)
def test_an_error_of_urllib_can_be_read_by_the_agent_and_again(sent: bytes, headers: list[str], body: bytes) -> None:
    error = not_found(answer(sent, *headers))
    http_errors.hold_bodies(error)
    encoded = encode_exception(error)
    again: Any = decode_exception(encoded.text)
    assert (encoded.lossy, encoded.lost) == (False, ())
    assert type(again) is urllib.error.HTTPError
    assert (again.code, again.msg, again.reason, again.url, str(again)) == (404, "Not Found", "Not Found", error.url, str(error))
    assert again.headers["x-a"] == again.hdrs["X-A"] == "1"
    assert getattr(again, "response", None) is None
    assert error.read() == again.read() == body
    assert error.read() == again.read() == b""


def test_what_breaks_while_a_body_is_read_breaks_where_the_agent_reads() -> None:
    response = answer(b"zz\r\nbad", "Transfer-Encoding: chunked")
    error = not_found(response)
    http_errors.hold_bodies(error)
    with pytest.raises(Exception, match=r"IncompleteRead|invalid literal"):
        error.read()


@pytest.mark.parametrize("headers", [{"A": "1"}, None, email.message.Message()])
def test_an_error_of_urllib_made_by_hand(headers: Any) -> None:
    error = urllib.error.HTTPError("http://localhost/x", 500, "no", headers, io.BytesIO(b"body"))
    error.mark = 7  # type: ignore[attr-defined]
    assert error.read(1) == b"b"
    encoded = encode_exception(error)
    again: Any = decode_exception(encoded.text)
    assert (encoded.lost, again.read(), again.mark) == ((), b"ody", 7)
    assert (again.headers is None) == (headers is None)


def test_what_is_not_kept_of_an_error_is_named_and_asked_for_in_vain() -> None:
    outer = RuntimeError("outer")
    outer.__cause__ = ApiError("no", Reply(404))
    encoded = encode_exception(outer)
    assert encoded.lost == (f"__cause__.reply, a {__name__}.Reply",)
    again: Any = decode_exception(encoded.text).__cause__
    assert again.__class__.__name__ == "ApiError"
    with pytest.raises(AttributeError, match=r"'ApiError' object has no attribute 'reply': a recording does not keep it .*Reply object"):
        again.reply.status
    assert getattr(again, "reply", None) is None
    assert ApiError("yes", 5).reply == 5
    assert not hasattr(ApiError, "reply")


def test_the_grade_says_what_is_not_kept() -> None:
    @tool(effect="read")
    def ask() -> None:
        raise ApiError("no", Reply(404))

    step = recorded(ask).runs()[0].steps[-1]
    assert step.grade == "semantic"
    assert [(reason.code, reason.detail) for reason in step.reasons] == [
        ("lossy", f"kept as text only: spanreplay.error (reply, a {__name__}.Reply)")
    ]


def test_secrets_are_taken_out_of_a_body_that_is_kept() -> None:
    response = answer(b'{"api_key": "abcdef-123456-geheim"}', "Content-Length: 35", "Set-Cookie: session=verysecretvalue1")
    error = not_found(response)

    @tool(effect="read")
    def ask() -> None:
        raise error

    kept = str(recorded(ask).runs()[0].steps[-1])
    assert "geheim" not in kept
    assert "verysecret" not in kept
    assert "[redacted:" in kept
    assert b"geheim" in error.read()


def test_a_class_that_answers_for_a_lost_object_is_not_filled_by_half() -> None:
    encoded = encode_exception(AsksItsReply("no", Reply(404)))
    assert encoded.lost == (f"reply, a {__name__}.Reply", f"its class {__name__}.AsksItsReply, which a replay cannot make again")
    assert isinstance(decode_exception(encoded.text), RecordedError)


def test_slots_are_kept() -> None:
    encoded = encode_exception(Slotted(4))
    again: Any = decode_exception(encoded.text)
    assert (encoded.lossy, again.code) == (False, 4)


def test_no_name_of_a_text_reaches_what_a_class_has() -> None:
    gone = {"$t": "text", "v": "x"}
    state = {"__reduce__": gone, "__call__": gone, "with_traceback": gone, "not a name": gone}
    text = {"$t": f"{__name__}:ApiError", "k": "exception", "v": {"message": "m", "args": [], "state": state}}
    before = set(vars(ApiError))
    decode_exception(json.dumps(text))
    assert set(vars(ApiError)) == before
    hostile = {"url": 1, "code": {}, "msg": None, "headers": [1], "content": 3}
    text = {"$t": "urllib.error:HTTPError", "k": "exception", "v": {"message": "m", "args": [], "http": hostile}}
    assert isinstance(decode_exception(json.dumps(text)), RecordedError)
