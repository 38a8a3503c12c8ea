"""Connections, datagrams and look-ups, by Python's own modules."""

import asyncio
import ftplib
import http.client
import imaplib
import logging.handlers
import multiprocessing.connection
import poplib
import smtplib
import socket
import ssl
import struct
import threading
import urllib.request
import xmlrpc.client

from replay.isolation.battery.registry import World, act


@act()
def socket_connect(w: World) -> None:
    socket.create_connection(("127.0.0.1", w.port), 2).sendall(b"x")


@act()
def socket_connect_ex(w: World) -> None:
    s = socket.socket()
    s.settimeout(2)
    s.connect_ex(("127.0.0.1", w.port))


@act()
def socket_connect_by_the_c_module(w: World) -> None:
    import _socket

    _socket.socket().connect(("127.0.0.1", w.port))


@act()
def socket_connect_mapped_to_ipv6(w: World) -> None:
    socket.socket(socket.AF_INET6).connect(("::ffff:127.0.0.1", w.port))


@act()
def socket_connect_to_all_zeros(w: World) -> None:
    socket.socket().connect(("0.0.0.0", w.port))


@act()
def unix_stream(w: World) -> None:
    socket.socket(socket.AF_UNIX).connect(str(w.out / "s"))


@act()
def unix_abstract(w: World) -> None:
    socket.socket(socket.AF_UNIX).connect("\0" + w.abstract)


@act()
def unix_relative(w: World) -> None:
    import os

    os.chdir(w.out)
    socket.socket(socket.AF_UNIX).connect("s")


@act()
def udp_sendto(w: World) -> None:
    socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", w.port))


@act()
def udp_connected(w: World) -> None:
    s = socket.socket(type=socket.SOCK_DGRAM)
    s.connect(("127.0.0.1", w.port))
    s.send(b"x")


@act()
def udp_sendmsg(w: World) -> None:
    socket.socket(type=socket.SOCK_DGRAM).sendmsg([b"x"], [], 0, ("127.0.0.1", w.port))


@act()
def tcp_fast_open(w: World) -> None:
    socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", w.port))


@act()
def raw_socket(w: World) -> None:
    segment = struct.pack(">HHHH", 9, w.port, 9, 0) + b"x"
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP).sendto(segment, ("127.0.0.1", 0))


@act()
def packet_socket(w: World) -> None:
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind(("lo", 0x0800))
    udp = struct.pack(">HHHH", 9, w.port, 9, 0) + b"x"
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton("127.0.0.1"), socket.inet_aton("127.0.0.1"))
    total = sum(struct.unpack(">10H", ip))
    checked = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    s.send(b"\0" * 12 + b"\x08\0" + ip[:10] + struct.pack(">H", checked) + ip[12:] + udp)


@act()
def server_answers_itself(w: World) -> None:
    """What a process says to a server in itself goes through the network all the same; the witness is told by it."""
    server = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: (server.accept(), socket.create_connection(("127.0.0.1", w.port), 2)), daemon=True)
    thread.start()
    socket.create_connection(server.getsockname(), 2)
    thread.join(2)


@act()
def asyncio_streams(w: World) -> None:
    asyncio.run(asyncio.open_connection("127.0.0.1", w.port))


@act()
def asyncio_datagrams(w: World) -> None:
    async def send() -> None:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=("127.0.0.1", w.port)
        )
        transport.sendto(b"x")
        await asyncio.sleep(0)

    asyncio.run(send())


@act()
def asyncio_in_a_thread(w: World) -> None:
    thread = threading.Thread(target=asyncio.run, args=(asyncio.open_connection("127.0.0.1", w.port),))
    thread.start()
    thread.join()


@act()
def name_of_localhost(w: World) -> None:
    socket.create_connection(("localhost", w.port), 2)


@act()
def urllib_request(w: World) -> None:
    urllib.request.urlopen(w.url, timeout=2)


@act()
def http_client(w: World) -> None:
    http.client.HTTPConnection("127.0.0.1", w.port, timeout=2).request("GET", "/")


@act()
def tls(w: World) -> None:
    ssl.create_default_context().wrap_socket(socket.socket(), server_hostname="localhost").connect(("127.0.0.1", w.port))


@act()
def smtp(w: World) -> None:
    smtplib.SMTP("127.0.0.1", w.port, timeout=2)


@act()
def ftp(w: World) -> None:
    ftplib.FTP().connect("127.0.0.1", w.port, timeout=2)


@act()
def imap(w: World) -> None:
    imaplib.IMAP4("127.0.0.1", w.port, timeout=2)


@act()
def pop3(w: World) -> None:
    poplib.POP3("127.0.0.1", w.port, timeout=2)


@act()
def xml_rpc(w: World) -> None:
    xmlrpc.client.ServerProxy(w.url).system.listMethods()


@act()
def socket_log_handler(w: World) -> None:
    handler = logging.handlers.SocketHandler("127.0.0.1", w.port)
    handler.emit(logging.makeLogRecord({"msg": "x"}))


@act()
def datagram_log_handler(w: World) -> None:
    logging.handlers.DatagramHandler("127.0.0.1", w.port).emit(logging.makeLogRecord({"msg": "x"}))


@act()
def syslog_handler(w: World) -> None:
    logging.handlers.SysLogHandler(("127.0.0.1", w.port)).emit(logging.makeLogRecord({"msg": "x"}))


@act()
def multiprocessing_client(w: World) -> None:
    multiprocessing.connection.Client(("127.0.0.1", w.port))


@act()
def open_descriptor_given_away(w: World) -> None:
    """A file that was opened for reading is sent to a process that listens."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(str(w.out / "s"))
    socket.send_fds(s, [b"x"], [w.there.open().fileno()])
