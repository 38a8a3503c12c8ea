"""Connections by installed packages, many of which make their system calls in C."""

import asyncio
import os
import struct
from typing import Any

from replay.isolation.battery.registry import World, act, module


@act(needs="requests")
def requests_get(w: World) -> None:
    import requests

    requests.get(w.url, timeout=2)


@act(needs="urllib3")
def urllib3_request(w: World) -> None:
    import urllib3

    urllib3.PoolManager(retries=False, timeout=2).request("GET", w.url)


@act(needs="httpx")
def httpx_get(w: World) -> None:
    import httpx

    httpx.get(w.url, timeout=2)


@act(needs="httpx anyio")
def httpx_async(w: World) -> None:
    import httpx

    async def get() -> None:
        async with httpx.AsyncClient(timeout=2) as client:
            await client.get(w.url)

    asyncio.run(get())


@act(needs="httpx2")
def httpx2_get(w: World) -> None:
    import httpx2

    httpx2.get(w.url, timeout=2)


@act(needs="aiohttp")
def aiohttp_get(w: World) -> None:
    import aiohttp

    async def get() -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(2)) as client:
            await client.get(w.url)

    asyncio.run(get())


@act(needs="websockets")
def websockets_connect(w: World) -> None:
    from websockets.sync.client import connect

    connect(w.url.replace("http", "ws"), open_timeout=2)


@act(needs="grpc")
def grpc_call(w: World) -> None:
    import grpc

    channel = grpc.insecure_channel(f"127.0.0.1:{w.port}")
    call: Any = channel.unary_unary("/a/b")
    call(b"x", timeout=2, wait_for_ready=False)


@act(needs="grpc")
def grpc_async(w: World) -> None:
    import grpc.aio

    async def ask() -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{w.port}") as channel:
            call: Any = channel.unary_unary("/a/b")
            await call(b"x", timeout=2)

    asyncio.run(ask())


@act(needs="pycurl")
def pycurl_perform(w: World) -> None:
    pycurl = module("pycurl")

    curl: Any = pycurl.Curl()
    curl.setopt(curl.URL, w.url)
    curl.setopt(curl.TIMEOUT, 2)
    curl.perform()


@act(needs="curl_cffi")
def curl_cffi_get(w: World) -> None:
    requests = module("curl_cffi.requests")

    requests.get(w.url, timeout=2)


@act(needs="psycopg")
def psycopg_tcp(w: World) -> None:
    psycopg = module("psycopg")

    psycopg.connect(f"host=127.0.0.1 port={w.port} connect_timeout=2")


@act(needs="psycopg")
def psycopg_unix(w: World) -> None:
    psycopg = module("psycopg")

    os.symlink(w.out / "s", w.scratch / f".s.PGSQL.{os.getpid()}")
    psycopg.connect(f"host={w.scratch} port={os.getpid()} connect_timeout=2")


@act(needs="uvloop")
def uvloop_connect(w: World) -> None:
    uvloop = module("uvloop")

    async def connect() -> None:
        await asyncio.wait_for(asyncio.open_connection("127.0.0.1", w.port), 2)

    uvloop.run(connect())


@act(needs="uvloop")
def uvloop_datagram(w: World) -> None:
    uvloop = module("uvloop")

    async def send() -> None:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=("127.0.0.1", w.port)
        )
        transport.sendto(b"x")
        await asyncio.sleep(0.05)

    uvloop.run(send())


@act(needs="uvloop")
def uvloop_subprocess(w: World) -> None:
    uvloop = module("uvloop")

    async def start() -> None:
        child = await asyncio.create_subprocess_exec("touch", str(w.out / "made"))
        await child.wait()

    uvloop.run(start())


@act(needs="trio")
def trio_connect(w: World) -> None:
    trio = module("trio")

    async def connect() -> None:
        await trio.open_tcp_stream("127.0.0.1", w.port)

    trio.run(connect)


@act(needs="trio")
def trio_subprocess(w: World) -> None:
    trio = module("trio")

    async def start() -> None:
        await trio.run_process(["touch", str(w.out / "made")])

    trio.run(start)


@act(needs="gevent")
def gevent_connect(w: World) -> None:
    socket = module("gevent.socket")

    socket.create_connection(("127.0.0.1", w.port), 2)


@act(needs="pyarrow")
def pyarrow_s3(w: World) -> None:
    fs = module("pyarrow.fs")

    fs.S3FileSystem(
        endpoint_override=f"127.0.0.1:{w.port}", scheme="http", access_key="a", secret_key="b", connect_timeout=1, request_timeout=1
    ).create_dir("bucket")


@act(needs="pyarrow")
def pyarrow_write(w: World) -> None:
    fs = module("pyarrow.fs")

    with fs.LocalFileSystem().open_output_stream(str(w.out / "made")) as stream:
        stream.write(b"x")


@act(needs="pyarrow")
def pyarrow_parquet(w: World) -> None:
    pa, parquet = module("pyarrow"), module("pyarrow.parquet")

    parquet.write_table(pa.table({"a": [1]}), str(w.out / "made.parquet"))


@act(needs="pyarrow")
def pyarrow_delete(w: World) -> None:
    fs = module("pyarrow.fs")

    fs.LocalFileSystem().delete_file(str(w.there))


@act(needs="duckdb")
def duckdb_database(w: World) -> None:
    import duckdb

    duckdb.connect(str(w.out / "made.duckdb")).execute("create table t (a int)")


@act(needs="duckdb")
def duckdb_copy(w: World) -> None:
    import duckdb

    duckdb.connect().execute(f"copy (select 1) to '{w.out}/made.csv'")


@act(needs="duckdb")
def duckdb_attach(w: World) -> None:
    import duckdb

    duckdb.connect().execute(f"attach '{w.out}/made.duckdb' as other; create table other.t (a int)")


@act(needs="cffi")
def cffi_connect(w: World) -> None:
    cffi = module("cffi")

    ffi = cffi.FFI()
    ffi.cdef("int socket(int, int, int); int connect(int, const void *, unsigned); int creat(const char *, unsigned);")
    libc: Any = ffi.dlopen(None)
    libc.connect(libc.socket(2, 1, 0), ffi.from_buffer(struct.pack("=H", 2) + struct.pack(">H4s8x", w.port, bytes([127, 0, 0, 1]))), 16)


@act(needs="cffi")
def cffi_creat(w: World) -> None:
    cffi = module("cffi")

    ffi = cffi.FFI()
    ffi.cdef("int creat(const char *, unsigned);")
    libc: Any = ffi.dlopen(None)
    libc.creat(str(w.out / "made").encode(), 0o644)


@act(needs="posix_ipc")
def posix_ipc_semaphore(w: World) -> None:
    posix_ipc = module("posix_ipc")

    posix_ipc.Semaphore(w.name).release()


@act(needs="posix_ipc")
def posix_ipc_queue(w: World) -> None:
    posix_ipc = module("posix_ipc")

    posix_ipc.MessageQueue(w.name).send(b"x", timeout=0)


@act(needs="sysv_ipc")
def sysv_ipc_memory(w: World) -> None:
    sysv_ipc = module("sysv_ipc")

    sysv_ipc.SharedMemory(w.key).write(b"x")


@act(needs="sysv_ipc")
def sysv_ipc_queue(w: World) -> None:
    sysv_ipc = module("sysv_ipc")

    sysv_ipc.MessageQueue(w.key).send(b"x", block=False)
