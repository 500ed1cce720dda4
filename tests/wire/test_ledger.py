import json

import numpy as np
import pytest
from wire_samples import everything

from laconic.wire import Bits, Counts, Hop, Ints, Ledger, Message, Sparse, encode_detailed


def words_of_32(states):
    """FedTM counts a clause's include bits in whole 32-bit words."""
    return 32 * np.ceil(states.shape[-1] / 32) * np.prod(states.shape[:-1])


class Update(Message, paper_bits={"states": words_of_32, "votes": np.log2(101), "n_examples": 32}):
    weights: Ints
    states: Bits | None
    votes: Ints
    n_examples: int


class Parameters(Message):
    values: Sparse


class ValuesOnly(Message, paper_bits={"values": 32}):
    values: Sparse


UPDATE = Update(np.arange(1, 13, dtype=np.int16), np.eye(4, 40, dtype=bool), np.arange(-5, 5), 100)


def filled():
    ledger = Ledger()
    for round_ in (2, 1):
        for client in (5, 3):
            for direction, message in (("down", everything(client)), ("up", UPDATE)):
                ledger.record(Hop(round_, "train", direction, client), message, encode_detailed(message))
    return ledger


def test_the_ledger_says_exactly_what_was_sent():
    ledger = filled()
    assert ledger.total(round=1, client=3, direction="up").sent_bytes == len(encode_detailed(UPDATE).data)
    expected = 2 * sum(len(encode_detailed(m).data) for m in (everything(3), everything(5), UPDATE, UPDATE))
    assert ledger.total().sent_bytes == expected


def test_totals_come_by_any_keys_and_in_order():
    ledger = filled()
    assert list(ledger.totals("round", "client")) == [(1, 3), (1, 5), (2, 3), (2, 5)]
    by_field = ledger.totals("field", direction="up")
    assert set(by_field) == {("weights",), ("states",), ("votes",), ("n_examples",), ("(envelope)",)}
    assert sum(counts.sent_bytes for counts in by_field.values()) == ledger.total(direction="up").sent_bytes
    assert ledger.total(round=9) == Counts()
    with pytest.raises(ValueError, match=r"no keys called .'clint'.; there are round, step"):
        ledger.total(clint=3)


def test_what_never_left_is_struck_and_what_went_before_stays():
    ledger, encoded = Ledger(), encode_detailed(UPDATE)
    ledger.record(Hop(1, "install", "down", 2), UPDATE, encoded)
    start = len(ledger)
    for hop in (
        Hop(1, "tell", "down", 2),
        Hop(1, "tell", "down", 3),
        Hop(1, "tell", "peer", 2, 3),
        Hop(1, "tell", "up", 2),
    ):
        ledger.record(hop, UPDATE, encoded)
    ledger.strike({2}, start)
    ways = [("install", "down", 2, None), ("tell", "down", 3, None), ("tell", "peer", 2, 3), ("tell", "up", 2, None)]
    assert [*ledger.totals("step", "direction", "client", "peer")] == ways


def test_papers_count_by_their_own_rules():
    ledger = filled()

    def paper_bits(field):
        return ledger.total(field=field, direction="up", round=1, client=3).paper_bits

    assert paper_bits("weights") == 12 * 16  # no rule given: as narrow as stored, 32 at most
    assert paper_bits("states") == 4 * 64
    assert paper_bits("votes") == pytest.approx(10 * 6.658, abs=0.01)
    assert paper_bits("n_examples") == 32
    assert paper_bits("(envelope)") == 0


def test_a_sparse_field_counts_its_mask_unless_the_paper_forgets_it():
    sparse = Sparse.of(np.ones(100, np.float32), np.arange(100) < 7)
    for cls, bits in ((Parameters, 100 + 7 * 32), (ValuesOnly, 7 * 32)):
        ledger = Ledger()
        ledger.record(Hop(1, "train", "up", 0), cls(sparse), encode_detailed(cls(sparse)))
        assert ledger.total(field="values").paper_bits == bits


def test_packed_and_entropy_bytes_agree_with_a_hand_count():
    ledger = filled()
    states = ledger.total(field="states", round=1, client=3, direction="up")
    assert states.packed_bytes == 4 * 40 // 8
    assert states.entropy_bytes == pytest.approx(160 / 8 * 0.1687, abs=0.01)  # H(1/40) = 0.1687
    votes = ledger.total(field="votes", round=1, client=3, direction="up")
    assert votes.packed_bytes == 5  # ten numbers of four bits
    assert votes.entropy_bytes == pytest.approx(10 * np.log2(10) / 8)


def test_a_field_left_out_costs_nothing():
    ledger, message = Ledger(), Update(UPDATE.weights, None, UPDATE.votes, 1)
    ledger.record(Hop(1, "train", "up", 0), message, encode_detailed(message))
    assert ledger.total(field="states") == Counts()


def test_export_and_import_change_nothing():
    ledger = filled()
    ledger.record(Hop(3, "gossip", "peer", 1, peer=2), UPDATE, encode_detailed(UPDATE))
    lines = list(ledger.to_jsonl())
    again = Ledger.from_jsonl(lines)
    assert again.columns == ledger.columns
    assert list(again.to_jsonl(start=len(lines) - 2)) == lines[-2:]
    assert json.loads(lines[0])["field"] == "bits"
    assert list(ledger.totals("peer")) == [(None,), (2,)]


@pytest.mark.parametrize("line", ["[]", '{"round": 1}', '{"round": 1, "st'])
def test_a_foreign_line_is_refused_with_its_number(line):
    lines = [*filled().to_jsonl()][:2]
    with pytest.raises(ValueError, match="line 3 is"):
        Ledger.from_jsonl([*lines, line])


@pytest.mark.parametrize("way", [("sideways", 0), ("peer", 0), ("up", 0, 3)])
def test_a_hop_that_goes_nowhere_is_refused(way):
    with pytest.raises(ValueError, match="direction is up, down or peer"):
        Ledger().record(Hop(1, "train", *way), UPDATE, encode_detailed(UPDATE))
