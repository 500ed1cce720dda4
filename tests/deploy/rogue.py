"""Whoever has certificates, saying and hearing through a real broker what it likes."""

import ssl
import threading
from pathlib import Path

import paho.mqtt.client as mqtt
from mqtt_nodes import Deployment


class Rogue:
    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self.heard: list[tuple[str, bytes]] = []
        self.codes: dict[int, str] = {}
        self.fate = ""
        self._news = threading.Condition()
        self._client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="000", protocol=mqtt.MQTTv5)
        context = ssl.create_default_context(cafile=deployment.folder / "ca.crt")
        context.load_cert_chain(folder / "cert.crt", folder / "cert.key")
        self._client.tls_set_context(context)
        self._client.on_connect = lambda client, _, flags, code, properties: self._note("fate", str(code))
        self._client.on_disconnect = lambda client, _, flags, code, properties: self._note("fate", f"ended: {code}")
        self._client.on_publish = lambda client, _, mid, code, properties: self._note(mid, str(code))
        self._client.on_subscribe = lambda client, _, mid, codes, properties: self._note(mid, str(codes[0]))
        self._client.on_message = lambda client, _, message: self.heard.append((message.topic, message.payload))
        try:
            self._client.connect("127.0.0.1", deployment.port)
            self._client.loop_start()
        except OSError as error:
            self.fate = f"refused: {error}"
        self._wait_until(lambda: bool(self.fate))

    def publish(self, topic: str, payload: bytes) -> str:
        """What the broker says to it; once connected, how the connection ended."""
        mid = self._client.publish(topic, payload, 1).mid
        self._wait_until(lambda: mid in self.codes or self.fate.startswith("ended"))
        return self.codes.get(mid, self.fate)

    def subscribe(self, topic: str) -> str:
        _, mid = self._client.subscribe(topic, 1)
        self._wait_until(lambda: mid in self.codes)
        return self.codes[mid]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _note(self, key: str | int, words: str) -> None:
        with self._news:
            if key == "fate":
                self.fate = words
            else:
                self.codes[int(key)] = words
            self._news.notify_all()

    def _wait_until(self, is_there) -> None:
        with self._news:
            assert self._news.wait_for(is_there, 60)
