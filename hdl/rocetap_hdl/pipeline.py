"""Values that travel down a pipeline: born at one stage, read at any later one."""

from amaranth.hdl import *

from .delay import Delay

__all__ = ["Pipeline"]

FAR, WIDE = 6, 8
"""Over so many stages a value of so many bits takes less in a small memory than in registers."""


class Pipeline:
    """Named values and the registers between the stages, made on demand.

    ``live`` says, at stage ``first``, whether an item enters. ``put(name, value, stage)`` says at
    which stage a value exists; ``get(name, stage)`` gives it at a later stage, through one register
    a stage. All registers of one name are shared. A wide value that nobody has asked for in
    the `FAR` stages before, or more, goes through one :class:`.delay.Delay` in their place.

    Values move only with a live item and are not reset: what stands where no item is, is anything.
    Values put with ``mark=True`` are what makes something happen: they move every clock, are reset,
    and must be 0 where no item is.

    The registers live in a module of their own, so ``get`` may stand inside an ``m.If``.
    """

    def __init__(self, m, live, name="pipeline", *, first=0):
        self.module = self._m = Module()
        m.submodules[name] = self._m
        self._values = {}
        self._born = {}
        self._marks = set()
        self.put("live", live, first, mark=True)

    def put(self, name, value, stage, *, mark=False):
        """Declares a value that exists at ``stage``; a view (struct) stays a view."""
        if name in self._born:
            raise ValueError(f"pipeline value {name!r} is born twice")
        self._born[name] = stage
        if mark:
            self._marks.add(name)
        self._values[name, stage] = value
        return value

    def get(self, name, stage):
        """The value of ``name`` as it is at ``stage``."""
        if name not in self._born:
            raise KeyError(f"no pipeline value {name!r}")
        if stage < self._born[name]:
            raise ValueError(f"{name!r} is born at stage {self._born[name]}, not known at {stage}")
        mark = name in self._marks
        known = max(at for of, at in self._values if of == name and at <= stage)
        source = self._values[name, known]
        if stage - known >= FAR and Shape.cast(source.shape()).width >= WIDE and not mark:
            self._m.submodules[f"{name}_s{stage}"] = delay = Delay(source.shape(), stage - known)
            self._m.d.comb += delay.i.eq(source)
            self._values[name, stage] = delay.o
            return delay.o
        for at in range(known + 1, stage + 1):
            register = Signal(source.shape(), name=f"{name}_s{at}", reset_less=not mark)
            if mark:
                self._m.d.sync += register.eq(source)
            else:
                with self._m.If(self.get("live", at - 1)):
                    self._m.d.sync += register.eq(source)
            self._values[name, at] = source = register
        return source
