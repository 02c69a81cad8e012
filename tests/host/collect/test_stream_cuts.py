"""How the transport cuts the stream decides nothing: not what is admitted, not what is counted."""

import random
from collections import Counter

import pytest

from rocetap.collect.outcomes import Outcome, outcomes
from rocetap.collect.session import CollectorSession
from rocetap.collect.settings import CollectorSettings, EpochLimits
from support.epoch_bench import final, report
from support.ipfix_tools import data_set, message, opened

NOW, TIME = 1_700_000_000_000, 1_700_000_000
FIRST = b"".join(opened(1)[0].sequence(report(1), TIME))
SEQUENCE, TEMPLATE = int.from_bytes(FIRST[8:12]), int.from_bytes(FIRST[16:18])
"""Of the first message behind the Templates: its sequence number, and the id of its Set."""


def octets_of(domain, rows):
    """A Data Set's records, as the exporter encodes them."""
    session, _ = opened(domain)
    return b"".join(session.sequence(rows, TIME))[20:]


def start_of(domain):
    return opened(domain)[1]


def collect(pieces, contexts):
    session = CollectorSession(CollectorSettings(epochs=EpochLimits(contexts=contexts)))
    rows, counters, raw = {}, Counter(), []
    for piece in [*pieces, None]:
        batch = session.end() if piece is None else session.receive(piece, NOW)
        assert batch.error is None
        for domain, epochs in batch.epochs:
            for row, outcome in zip(epochs, outcomes(epochs), strict=True):
                rows[domain, int(row["report"]["epoch_id"])] = (row.tobytes(), Outcome(outcome))
        counters += batch.counters
        raw += [(one.domain, one.rule, one.octets) for one in batch.raw]
    return rows, counters, sorted(raw)


def random_stream(rng, domains=2):
    """Messages of one to four Sets: epochs begin, go on, end and go wrong in any of them."""
    template = {domain: start_of(domain) for domain in range(1, domains + 1)}
    octets = b"".join(template.values())
    top, running = Counter(), {domain: {} for domain in template}
    sequence = dict.fromkeys(template)
    for _ in range(rng.randrange(5, 40)):
        domain = rng.choice(list(template))
        sets, count = [], 0
        for _ in range(rng.randrange(1, 5)):
            rows = []
            for _ in range(rng.randrange(1, 6)):
                mine = running[domain]
                if not mine or rng.random() < 0.5:
                    top[domain] += rng.randrange(1, 3)
                    mine[top[domain]] = 0
                epoch = rng.choice(list(mine)[-6:])
                mine[epoch] += 1
                make = final if rng.random() < 0.4 else report
                wrong = {"skipped": 3} if rng.random() < 0.1 else {}
                rows.append(make(mine[epoch], epoch, **wrong))
                if make is final and rng.random() < 0.9:
                    del mine[epoch]
            sets.append(data_set(TEMPLATE, b"".join(octets_of(domain, row) for row in rows)))
            count += len(rows)
        if sequence[domain] is None:
            sequence[domain] = SEQUENCE
        octets += message(*sets, domain=domain, sequence=sequence[domain])
        sequence[domain] += count
    return octets


def cut(rng, octets, pieces):
    places = sorted(rng.randrange(len(octets)) for _ in range(pieces - 1))
    return [octets[a:b] for a, b in zip([0, *places], [*places, len(octets)], strict=True)]


@pytest.mark.parametrize("seed", range(12))
def test_any_cut_comes_to_the_same(seed):
    rng = random.Random(seed)
    contexts = rng.choice([1, 2, 3, 5, 9, 1000])
    octets = random_stream(rng)
    whole = collect([octets], contexts)
    assert not whole[1]["ipfix.records_missing"]
    for pieces in (2, 3, 7, 50):
        assert collect(cut(rng, octets, pieces), contexts) == whole
    if contexts < 9:
        assert whole[1]["resource.contexts"], "the limit was met"


def test_what_ends_in_a_set_makes_room_for_what_begins_in_it():
    """Whole, cut before the final report, and cut behind it."""
    begin = start_of(1)
    stream = [message(data_set(TEMPLATE, octets_of(1, report(1, 1))), sequence=SEQUENCE),
              message(data_set(TEMPLATE, octets_of(1, report(1, 2))), sequence=SEQUENCE + 1)]
    rows, counters, _ = collect([begin + b"".join(stream)], 1)
    assert sorted(rows) == [(1, 1)]
    assert counters["resource.contexts"] == 1
    finals = [message(data_set(TEMPLATE, octets_of(1, final(1, 1)) + octets_of(1, final(1, 2))),
                      sequence=SEQUENCE)]
    for pieces in ([begin + finals[0]], [begin, finals[0]]):
        rows, counters, _ = collect(pieces, 1)
        assert {key: outcome for key, (_, outcome) in rows.items()} == {(1, 1): Outcome.complete}
        assert counters["resource.contexts"] == 1, "both begin in the Set, and one has room"
    then = [message(data_set(TEMPLATE, octets_of(1, report(1, 1))), sequence=SEQUENCE),
            message(data_set(TEMPLATE, octets_of(1, report(1, 2)) + octets_of(1, final(2, 1))),
                    sequence=SEQUENCE + 1)]
    for pieces in ([begin + b"".join(then)], [begin, *then]):
        rows, counters, _ = collect(pieces, 1)
        assert {key: outcome for key, (_, outcome) in rows.items()} == {
            (1, 1): Outcome.complete, (1, 2): Outcome.incomplete}
        assert not counters["resource.contexts"]
