"""What travels between clients and server, in as few bytes as we know how, and how many those were."""

from laconic.wire.buffer import WireError
from laconic.wire.codec import Encoded, bound, decode, encode, encode_detailed, size
from laconic.wire.ledger import ENVELOPE, Counts, Hop, Ledger, count_fields
from laconic.wire.message import EMPTY, Bits, Floats, Ints, Message, Sparse

__all__ = [
    "EMPTY",
    "ENVELOPE",
    "Bits",
    "Counts",
    "Encoded",
    "Floats",
    "Hop",
    "Ints",
    "Ledger",
    "Message",
    "Sparse",
    "WireError",
    "bound",
    "count_fields",
    "decode",
    "encode",
    "encode_detailed",
    "size",
]
