"""One connection to an MQTT broker over TLS with a certificate, made again whenever it breaks, its bytes counted.

paho-mqtt does the talking in a thread of its own. A connection that is made again resumes its TLS session, which saves
both certificates; sessions of the broker are not kept, for whoever waits asks again at a birth message.
"""

from __future__ import annotations

import socket
import ssl
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import paho.mqtt.client as mqtt

from laconic.fleets.frames import Sent

QOS = 1
PING_BYTES = 24  # on the socket, each way: two of MQTT in a record of TLS 1.3
MOST_UNDER_WAY = 60_000  # messages that the broker has not yet acknowledged
RETRY_SECONDS = (1, 60)  # from one trial to the next, twice as long each time


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Will(NamedTuple):
    """A retained message at every birth, and what the broker puts in its place when the connection breaks."""

    topic: str
    birth: bytes
    death: bytes


class ResumingContext(ssl.SSLContext):
    """For a client: the next connection resumes the session of the last."""

    kept: ssl.SSLSession | None = None

    def wrap_socket(self, sock: socket.socket, **options: Any) -> ssl.SSLSocket:  # type: ignore[override]  # as paho does
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each exchange waits 40 ms for an ACK
        return super().wrap_socket(sock, **options | {"session": self.kept})


class Link:
    def __init__(
        self,
        address: Address,
        folder: Path,
        name: str,
        topics: Sequence[str],
        hear: Callable[[str, bytes], object],
        say: Callable[[str], None],
        *,
        will: Will | None = None,
        on_up: Callable[[], object] = lambda: None,
        on_down: Callable[[], object] = lambda: None,
        keepalive_seconds: int = 300,
    ) -> None:
        """folder: of ca.crt, cert.crt and cert.key. hear, on_up, on_down: called in the connection's thread."""
        self.address, self._topics, self._will, self._hear, self._say = address, topics, will, hear, say
        self._on_up, self._on_down, self.is_up = on_up, on_down, threading.Event()
        self._birth: int | None = None
        self._is_greeted = False  # whether the broker has said anything on this connection
        self._closed, self._linked, self._at_start = Sent(), Sent(), Sent()
        self._n_pings, self._trouble, self._lock = 0, "", threading.Lock()
        self._context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._context.load_verify_locations(folder / "ca.crt")
        self._context.load_cert_chain(folder / "cert.crt", folder / "cert.key")
        self._client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name, protocol=mqtt.MQTTv5)
        self._client.tls_set_context(self._context)
        self._client.max_inflight_messages_set(MOST_UNDER_WAY)
        self._client.reconnect_delay_set(*RETRY_SECONDS)
        if will is not None:
            self._client.will_set(will.topic, will.death, QOS, retain=True)
        self._client.on_connect, self._client.on_disconnect = self._connected, self._disconnected
        self._client.on_connect_fail, self._client.on_socket_close = self._failed, self._close_socket
        self._client.on_subscribe, self._client.on_publish = self._subscribed, self._published
        self._client.on_message = lambda client, _, message: self._hear(message.topic, message.payload)
        self._client.on_log = self._count_ping
        self._keepalive_seconds = keepalive_seconds

    def open(self) -> None:
        """Returns at once; is_up says when it is there."""
        self._client.connect_async(self.address.host, self.address.port, self._keepalive_seconds, clean_start=True)
        self._client.loop_start()

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> mqtt.MQTTMessageInfo:
        return self._client.publish(topic, payload, QOS, retain)

    def close(self, last_words: bytes | None = None) -> None:
        """last_words: retained in place of the birth message; a broker sends no will for who takes leave."""
        if self._will is not None and last_words is not None and self.is_up.is_set():
            self.publish(self._will.topic, last_words, retain=True).wait_for_publish(5)
        self._client.disconnect()
        self._client.loop_stop()
        self.is_up.clear()

    # ------------------------------------------------------------ bytes
    def count(self) -> Sent:
        """Of all connections so far."""
        with self._lock:
            return self._closed.plus(count_bytes(self._client.socket()))

    @property
    def linked(self) -> Sent:
        """Of these, what it took to connect: TLS, CONNECT, subscriptions, birth."""
        return self._linked

    @property
    def idle(self) -> Sent:
        """Of these, what kept connections alive."""
        return Sent(PING_BYTES * self._n_pings, PING_BYTES * self._n_pings)

    # ------------------------------------------------------------ paho's callbacks
    def _connected(self, client: mqtt.Client, _: Any, flags: Any, code: Any, properties: Any) -> None:
        self._is_greeted = True
        if code.is_failure:
            self._tell_trouble(f"the broker at {self.address} refuses: {code}")
            return
        client.subscribe([(topic, mqtt.SubscribeOptions(QOS)) for topic in self._topics])

    def _subscribed(self, client: mqtt.Client, _: Any, mid: int, codes: Sequence[Any], properties: Any) -> None:
        if any(code.is_failure for code in codes):
            self._tell_trouble(f"the broker at {self.address} refuses {', '.join(self._topics)}: {codes[0]}")
        elif self._will is not None:
            self._birth = self.publish(self._will.topic, self._will.birth, retain=True).mid
        else:
            self._come_up()

    def _published(self, client: mqtt.Client, _: Any, mid: int, code: Any, properties: Any) -> None:
        if code is not None and code.is_failure:
            self._say(f"the broker at {self.address} refused a message: {code}")
        if mid == self._birth:
            self._birth = None
            self._come_up()

    def _come_up(self) -> None:
        now = self.count()
        self._linked = self._linked.plus(now.minus(self._at_start))
        self._trouble = ""
        self.is_up.set()
        self._on_up()

    def _failed(self, client: mqtt.Client, _: Any) -> None:
        error = sys.exc_info()[1]  # paho calls this where it caught it, and does not hand it on
        self._tell_trouble(f"the broker at {self.address} is not reached: {error}")

    def _disconnected(self, client: mqtt.Client, _: Any, flags: Any, code: Any, properties: Any) -> None:
        self.is_up.clear()
        # who waits asks again at a birth message, and what a broker does not take would end every connection anew
        dropped = client.drop_out_messages()
        self._on_down()
        if code.is_failure:
            longest = max((len(message.payload) for message in dropped), default=0)
            lost = f"; {len(dropped)} messages were under way, the longest of {longest} B" if dropped else ""
            if not self._is_greeted:
                code = "it did not say why; was this certificate taken back, or has it expired?"
            self._tell_trouble(f"the connection to the broker at {self.address} ended: {code}{lost}")
        self._is_greeted = False

    def _close_socket(self, client: mqtt.Client, _: Any, sock: Any) -> None:
        with self._lock:
            self._closed = self._at_start = self._closed.plus(count_bytes(sock))
        self._context.kept = sock.session or self._context.kept

    def _count_ping(self, client: mqtt.Client, _: Any, level: int, words: str) -> None:
        self._n_pings += words == "Sending PINGREQ"

    def _tell_trouble(self, words: str) -> None:
        """Once, however often it is tried."""
        if words != self._trouble:
            self._trouble = words
            self._say(words)


def count_bytes(sock: Any) -> Sent:
    """Of a TCP connection, as Linux counts them: what TLS made of all that was sent and received. Elsewhere none."""
    if sock is None or not hasattr(socket, "TCP_INFO"):
        return Sent()
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
    except OSError:  # closed meanwhile
        return Sent()
    if len(info) < 216:  # a kernel before 4.19
        return Sent()
    received, sent, sent_again = (struct.unpack_from("<Q", info, at)[0] for at in (128, 200, 208))
    return Sent(sent - sent_again, received)
