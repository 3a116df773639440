"""Reads an event log (--events) as far as pictures need it: which worker did what when. The format is described in
src/watch/eventlog.h; predictions are skipped, since times and clocks do without them. `plait audit` is the judge of a log, not
this."""
import pathlib
import struct

(JOB, TABLE, GET, INC, PUSH, SEND, SUM, CLOCK, BARRIER, LEAVE, APPLY, DROP, TICK, GONE, DONE, GIVE, MIX, STAND,
 VIEW, SERVE, HAND, COPY, ZERO, TURN) = range(1, 25)

BEGIN, CALL = 31, 32
VERSIONS = range(5, 14)  # 6: groups; 7: turns of schedules; 8: a step's variables; 9: locks, fellows; 10: where runs go on; 11: calls
# of server functions; 12: shards that move; 13: workers that were started anew, each of whose lives has a stream: here the first


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def signed(self):
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def numbers(self, n):
        for _ in range(n):
            self.number()

    def text(self):
        length = self.number()
        self.at += length
        return self.data[self.at - length:self.at].decode()


def skip_piece(c):
    c.numbers(5)
    if c.number() & 1:  # the same rows as before
        return
    c.number()
    if c.signed() < 0:
        c.numbers(c.number())


def worker_events(records):
    """(kind, seconds, clock, seconds it took) of one worker's stream."""
    c, now, clock, found = Cursor(records), 0, 0, []
    while c.at < len(records):
        kind, took, of = records[c.at], 0, clock
        c.at += 1
        now += c.number()
        if kind == JOB:
            c.numbers(6)
        elif kind == TABLE:
            c.numbers(4)
            for _ in range(4 if c.number() & 8 else 3):
                c.text()
        elif kind == GET:
            c.number()
            of, took = clock + c.signed(), c.number()
            c.number()
            for _ in range(c.number()):
                skip_piece(c)
        elif kind == INC:
            c.numbers(3)
            c.at += 4
        elif kind in (PUSH, SUM):
            c.number()
            of = clock + c.signed()
        elif kind in (GIVE, MIX):
            c.numbers(2)
            of = clock + c.signed()
            c.numbers(kind == MIX)
        elif kind == SEND:
            c.numbers(3)
            c.numbers(2 * c.number())
        elif kind == VIEW:
            c.numbers(4)
        elif kind == ZERO:
            c.numbers(3)
        elif kind == TURN:
            c.number()
            of = clock + c.signed()
            c.number()
            c.numbers(3 * c.number())
        elif kind == CLOCK:
            of = clock + c.signed()
            clock = of + 1
        elif kind == BEGIN:
            c.signed()
            c.text()
        elif kind == CALL:
            of = clock + c.signed()
            c.number()
            c.text()
            c.at += 4
            c.numbers(c.number())
            for _ in range(c.number()):
                c.number()
                c.at += 8
        elif kind not in (BARRIER, LEAVE, DONE, STAND):
            raise ValueError(f"a worker's stream has no event {kind}: is the log of another version?")
        found.append((kind, now * 1e-9, of, took * 1e-9))
    return found


def workers(path):
    """The events of each worker about tables of all workers, by rank, from a log file that is whole."""
    data, at, streams = pathlib.Path(path).read_bytes(), 32, {}
    if data[:8] != b"plaitlog" or struct.unpack_from("<I", data, 8)[0] not in VERSIONS:
        raise ValueError(f"{path}: no event log of versions {VERSIONS[0]} to {VERSIONS[-1]}")
    while at < len(data):
        tag, side, group, rank, size = struct.unpack_from("<cBHII", data, at)
        if tag == b"R" and side == 0 and group == 0:
            streams.setdefault(rank, bytearray()).extend(data[at + 16:at + 16 + size])
        at += 16 + size
    return {rank: worker_events(bytes(records)) for rank, records in sorted(streams.items())}
