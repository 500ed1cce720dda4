"""How long a run would be on the air of links that small devices have, and what energy that takes a client.

An estimate from published figures, and a kind one: clients do not disturb each other, nothing is lost, what goes one
way in a round goes in as few packets as it can, and a round lasts as long as its slowest client.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from math import ceil
from typing import NamedTuple

from laconic.report.run import ClientBytes

UNCHECKED = "not checked against its source"  # power and energy that are cited from memory
LORA_BANDWIDTH_HZ = 125_000
LORA_HEADER_BYTES = 13  # of a LoRaWAN frame: MHDR 1, FHDR 7, FPort 1, MIC 4
SX1276_VOLTS, SX1276_SEND_AMPERES, SX1276_RECEIVE_AMPERES = 3.3, 0.029, 0.0108


class Way(NamedTuple):
    """To a client or from it."""

    on_air: Callable[[int], float]  # bytes -> seconds
    words: str
    watts: float = 0.0  # that the client takes meanwhile
    joules_per_byte: float = 0.0  # where energy was published by what is carried
    duty: float = 1.0  # share of the time that one may be on the air

    def seconds(self, n_bytes: int) -> float:
        return self.on_air(n_bytes) / self.duty

    def joules(self, n_bytes: int) -> float:
        return self.watts * self.on_air(n_bytes) + self.joules_per_byte * n_bytes


class Link(NamedTuple):
    name: str
    up: Way
    down: Way
    source: str
    wake_seconds: float = 0.0  # in each round in which a client has something to send or to get
    wake_joules: float = 0.0  # to connect, and until it is let go


def stream(bits_per_second: float) -> Callable[[int], float]:
    return lambda n_bytes: 8 * n_bytes / bits_per_second


def lora(spreading: int, most_bytes: int, *, has_checksum: bool) -> Callable[[int], float]:
    """most_bytes: of payload in a frame."""

    def frame(n_bytes: int) -> float:
        return lora_frame_seconds(spreading, n_bytes + LORA_HEADER_BYTES, has_checksum=has_checksum)

    def on_air(n_bytes: int) -> float:
        n_full, rest = divmod(n_bytes, most_bytes)
        return n_full * frame(most_bytes) + (frame(rest) if rest else 0)

    return on_air


def lora_frame_seconds(spreading: int, n_bytes: int, *, has_checksum: bool) -> float:
    """Semtech AN1200.13: preamble of 8 symbols, explicit header, coding rate 4/5.

    What goes up has a checksum of its payload; what goes down has none, to be short (LoRaWAN 1.0.3, section 3.2).
    """
    slow = 2 if spreading > 10 else 0  # low data rate optimisation
    n_bits = 8 * n_bytes - 4 * spreading + 28 + (16 if has_checksum else 0)
    n_symbols = 8 + 5 * max(ceil(n_bits / (4 * (spreading - slow))), 0)
    return (8 + 4.25 + n_symbols) * (1 << spreading) / LORA_BANDWIDTH_HZ


def _lorawan(spreading: int, most_bytes: int) -> Link:
    send, receive = (SX1276_VOLTS * amperes for amperes in (SX1276_SEND_AMPERES, SX1276_RECEIVE_AMPERES))
    frames = f"frames of {most_bytes} B"
    return Link(
        f"LoRaWAN, SF{spreading}",
        Way(lora(spreading, most_bytes, has_checksum=True), f"{frames}, on the air 1 % of the time", send, duty=0.01),
        Way(
            lora(spreading, most_bytes, has_checksum=False),
            f"{frames}, all in the second window (869.525 MHz), on the air 10 % of the time; in the first, 1 %, they "
            "would take ten times as long",
            receive,
            duty=0.1,
        ),
        "EU868, class C, a gateway for each client: LoRaWAN Regional Parameters 1.0.2rB (2017), ETSI EN 300 220 "
        "(2017); time on air: Semtech AN1200.13 (2013), no checksum of the payload down: LoRaWAN 1.0.3 (2018); 29 mA "
        f"sending at 13 dBm, 10.8 mA receiving, 3.3 V: Semtech SX1276 (2020), {UNCHECKED}",
    )


# 4G: power by rate, W and W s/Mbit, beside how fast links were
_LTE_BASE, _LTE_UP, _LTE_DOWN, _LTE_UP_MBITS, _LTE_DOWN_MBITS = 1.28804, 0.43839, 0.05197, 5.64, 12.74
_GSM_JOULES_PER_BYTE = 0.036e-3

LINKS = (
    _lorawan(12, 51),
    _lorawan(7, 222),
    Link(
        "NB-IoT",
        Way(stream(1000 / 0.016), "62.5 kbit/s", 0.716),
        Way(stream(680 / 0.026), "26.2 kbit/s", 0.213),
        "category NB1, its largest blocks one after the other: 3GPP release 13 (2016); 716 mW sending at 23 dBm, "
        f"213 mW receiving: Lauridsen et al., VTC Spring (2018), {UNCHECKED}; connecting is not counted",
    ),
    Link(
        "2G",
        Way(stream(2 * 13_400), "26.8 kbit/s", joules_per_byte=_GSM_JOULES_PER_BYTE),
        Way(stream(4 * 13_400), "53.6 kbit/s", joules_per_byte=_GSM_JOULES_PER_BYTE),
        "GPRS class 10, coding scheme CS-2: 3GPP TS 43.064 (2001); 0.036 J/kB, 1.7 J to connect and 0.25 W for 6 s "
        f"after it: Balasubramanian et al., IMC (2009), {UNCHECKED}",
        wake_joules=1.7 + 0.25 * 6,
    ),
    Link(
        "4G",
        Way(stream(_LTE_UP_MBITS * 1e6), "5.64 Mbit/s", _LTE_BASE + _LTE_UP * _LTE_UP_MBITS),
        Way(stream(_LTE_DOWN_MBITS * 1e6), "12.74 Mbit/s", _LTE_BASE + _LTE_DOWN * _LTE_DOWN_MBITS),
        "LTE, median rates and power of a phone, 0.26 s at 1.21 W to connect and 11.6 s at 1.06 W after it: Huang et "
        f"al., MobiSys (2012), {UNCHECKED} but for the rates",
        wake_seconds=0.2601,
        wake_joules=0.2601 * 1.2107 + 11.576 * 1.06,
    ),
)


class Airtime(NamedTuple):
    seconds: dict[int, float]  # round -> how long its slowest client takes
    joules: dict[int, float]  # client -> in all


def estimate(link: Link, carried: Mapping[tuple[int, int], ClientBytes]) -> Airtime:
    """carried: (round, client) -> what it sent and received then."""
    seconds, joules = defaultdict[int, float](float), defaultdict[int, float](float)
    for (number, client), (sent, received) in carried.items():
        if sent or received:
            took = link.wake_seconds + link.up.seconds(sent) + link.down.seconds(received)
            seconds[number] = max(seconds[number], took)
            joules[client] += link.wake_joules + link.up.joules(sent) + link.down.joules(received)
    return Airtime(dict(seconds), dict(joules))
