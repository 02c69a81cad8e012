"""The window engines against the reference model: operations, and the records they must give."""

import random

from rocetap.spec.flags import SequenceFlag
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import OperationKind
from rocetap_hdl.window import WindowEngine

from .reference import ReferenceConnection
from .simulate import fields, simulate

__all__ = ["COUNTERS", "Expectation", "check", "run_engine"]

COUNTERS = ("requests", "skipped", "filled", "expired", "abandoned", "pending", "repeated", "late",
            "first_time", "last_time")


END = {"kind": OperationKind.MARKER, "context": 0, "tag": 0xFFFF}
PATIENCE = 200_000


def run_engine(operations, *, idle=0.0, seed=0, engine=WindowEngine, **parameters):
    """Records of a list of operations, one a clock; an int among them is that many idle clocks.

    ``idle``: probability of an idle clock behind an operation. A marker at the end says when the
    engine has done everything.
    """
    dut = engine(**parameters)
    rng = random.Random(seed)

    async def drive(ctx):
        for operation in operations:
            if isinstance(operation, int):
                await ctx.tick().repeat(operation)
                continue
            ctx.set(dut.operations.payload, {**operation, "kind": int(operation["kind"])})
            ctx.set(dut.operations.valid, 1)
            await ctx.tick()
            ctx.set(dut.operations.valid, 0)
            while rng.random() < idle:
                await ctx.tick()
        while ctx.get(dut.busy):
            await ctx.tick()
        ctx.set(dut.operations.payload, {**END, "kind": int(END["kind"])})
        ctx.set(dut.operations.valid, 1)
        await ctx.tick()
        ctx.set(dut.operations.valid, 0)
        for _ in range(PATIENCE):
            record = ctx.get(dut.records.payload)
            if ctx.get(dut.records.valid) and record.kind == RecordKind.MARKER \
                    and record.tag == END["tag"]:
                break
            await ctx.tick()
        else:
            raise AssertionError(f"no marker in {PATIENCE} clocks")
        await ctx.tick()

    (records,) = simulate(dut, drive, dut.records)
    return [fields(record) for record in records[:-1]]


def record_of(epoch, *, context, tag, number):
    """The record that a reference report must be."""
    return {"kind": RecordKind.SEQUENCE, "reserved": 0, "context": context, "tag": tag,
            "flags": epoch.flags, "epoch": number, "window": epoch.window,
            **{name: getattr(epoch, name) for name in COUNTERS}}


class Expectation:
    """Operations for the engine, and the records that the reference model asks for."""

    def __init__(self):
        self.operations, self.records = [], []
        self.contexts, self.tags, self.epochs, self.models = {}, {}, {}, {}

    def _say(self, kind, context, **values):
        self.operations.append({"kind": kind, "context": context, **values})

    def _expect(self, context, reports):
        """Reports belong to the epoch that was open before; a start opens the next number."""
        for report in reports:
            self.records.append(record_of(report, context=context, tag=self.tags[context],
                                          number=self.epochs[context]))

    def provision(self, context, window, tag, **values):
        self._say(OperationKind.PROVISION, context, window=window, tag=tag, **values)
        model = self.models.setdefault(context, ReferenceConnection(window, combine=True))
        self.epochs.setdefault(context, 0)
        self._interrupt(values)
        self._expect(context, model.provision(window))
        self.tags[context] = tag

    def _interrupt(self, values):
        if values.get("raise_generation"):
            for model in self.models.values():
                model.capture_discontinuity()

    def request(self, context, psn, time, **values):
        self._say(OperationKind.REQUEST, context, psn=psn, time=time, **values)
        self._interrupt(values)
        model = self.models[context]
        was_active = model.active
        closed = model.request(psn, time)
        self._expect(context, closed)
        if model.enabled and (closed or not was_active):
            self.epochs[context] += 1

    def snapshot(self, context, **values):
        self._say(OperationKind.SNAPSHOT, context, **values)
        self._interrupt(values)
        model = self.models[context]
        if model._interrupted:  # a report of an interrupted epoch is its last
            self._expect(context, model.close())
        else:
            report = model.snapshot()
            self._expect(context, [report] if report else [])

    def close(self, context, reasons=0, kind=OperationKind.CLOSE, **values):
        self._say(kind, context, reasons=reasons, **values)
        self._interrupt(values)
        self._expect(context, self.models[context].close(reasons))
        if kind == OperationKind.REMOVE:
            self.models[context].enabled = False

    def violation(self, context, **values):
        self._say(OperationKind.VIOLATION, context, **values)
        self._interrupt(values)
        model = self.models[context]
        if model.enabled and not model.active:
            self.records.append(dict.fromkeys(fields_of_record(), 0) | {
                "kind": RecordKind.DISABLED, "context": context, "tag": self.tags[context],
                "flags": int(SequenceFlag.profileViolation)})
        self._expect(context, model.violation())


def fields_of_record():
    return ["kind", "reserved", "context", "tag", "flags", "epoch", "window", *COUNTERS]


def check(expectation, **parameters):
    got = run_engine(expectation.operations, **parameters)
    for index, (record, wanted) in enumerate(zip(got, expectation.records, strict=False)):
        assert record == wanted, f"record {index}"
    assert len(got) == len(expectation.records)
    return got
