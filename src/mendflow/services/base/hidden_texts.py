"""Texts that nobody is shown: tokens of this server, and of the pilots that it hears from, which a job of the same user
may be able to read on its machine, and print.

They are masked by as many stars, so that the places in a log stay what they are."""

import msgspec

from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value


class HiddenTexts:
    def __init__(self) -> None:
        self._texts: tuple[str, ...] = ()

    def add(self, *texts: str) -> None:
        self._texts = tuple(dict.fromkeys((*self._texts, *(text for text in texts if text))))

    def mask(self, text: str) -> str:
        for hidden in self._texts:
            text = text.replace(hidden, "*" * len(hidden))
        return text

    def mask_bytes(self, data: bytes) -> bytes:
        for hidden in self._texts:
            data = data.replace(hidden.encode(), b"*" * len(hidden.encode()))
        return data

    def whole(self, data: bytes) -> int:
        """How many of these bytes there are without the beginning of a hidden text at their end."""
        ends = [len(data)]
        for hidden in (text.encode() for text in self._texts):
            ends += [len(data) - size for size in range(1, len(hidden)) if data.endswith(hidden[:size])]
        return min(ends)

    def mask_outcome(self, outcome: Outcome) -> Outcome:
        """The outcome with the end of its log, its fault and its outputs as they may be shown."""
        if not self._texts:
            return outcome
        fault = outcome.fault
        if fault is not None:
            fault = msgspec.structs.replace(fault, message=self.mask(fault.message), log_tail=self.mask(fault.log_tail))
        outputs = self._mask_value(outcome.outputs)
        return msgspec.structs.replace(outcome, fault=fault, log_tail=self.mask(outcome.log_tail), outputs=outputs)

    def _mask_value(self, value: Value) -> Value:
        """The value itself, unless something in it is hidden."""
        if isinstance(value, str):
            return self.mask(value)
        if not isinstance(value, list | dict):
            return value
        text = msgspec.json.encode(value)
        masked = self.mask_bytes(text)
        return value if masked == text else msgspec.json.decode(masked)
