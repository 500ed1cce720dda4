"""What travels between clients and server, in as few bytes as we know how, and how many those were."""

from laconic.wire.buffer import WireError
from laconic.wire.codec import Encoded, bound, decode, decode_detailed, encode, encode_detailed, most_bytes, size
from laconic.wire.expected import Due, Expected, UpTo
from laconic.wire.ledger import ENVELOPE, NOTES, Counts, Hop, Ledger, count_fields
from laconic.wire.message import EMPTY, MOST_COUNT, Bits, Count, CountArray, Floats, Ints, Message, Share, Sparse

__all__ = [
    "EMPTY",
    "ENVELOPE",
    "MOST_COUNT",
    "NOTES",
    "Bits",
    "Count",
    "CountArray",
    "Counts",
    "Due",
    "Encoded",
    "Expected",
    "Floats",
    "Hop",
    "Ints",
    "Ledger",
    "Message",
    "Share",
    "Sparse",
    "UpTo",
    "WireError",
    "bound",
    "count_fields",
    "decode",
    "decode_detailed",
    "encode",
    "encode_detailed",
    "most_bytes",
    "size",
]
