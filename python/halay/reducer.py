"""Which gradients are to be sent when: counts backward passes and completes groups. Pure; knows no tensor.

Parameters are numbers. A group is sent when all of its members are due; a parameter outside any group is one by itself.
Thread: the one that runs backward.
"""

from __future__ import annotations

from collections.abc import Sequence


class TooManyPasses(AssertionError):
    """A gradient was computed more often than backward_passes_per_step allows."""


def split_list(items: Sequence[int], count: int) -> list[list[int]]:
    """Exactly `count` contiguous parts; sizes differ by at most one, larger ones first; empty ones if there are too few."""
    size, extra = divmod(len(items), count)
    parts, start = [], 0
    for index in range(count):
        end = start + size + (1 if index < extra else 0)
        parts.append(list(items[start:end]))
        start = end
    return parts


class Reducer:
    """The book-keeping of one optimizer."""

    def __init__(self, passes: int, groups: Sequence[Sequence[int]] = ()) -> None:
        self.passes = passes
        self._left: dict[int, int] = {}
        self._group_of: dict[int, int] = {}
        self.groups: list[list[int]] = [list(group) for group in groups if group]
        for number, group in enumerate(self.groups):
            for index in group:
                self._group_of[index] = number
        self._due: dict[int, None] = {}  # due, but waiting for the rest of their group; in order
        self._sent: set[int] = set()

    def add(self, index: int) -> None:
        """Another parameter takes part."""
        self._left.setdefault(index, self.passes)

    @property
    def known(self) -> list[int]:
        """The parameters that take part, in order of arrival."""
        return list(self._left)

    @property
    def any_sent(self) -> bool:
        return bool(self._sent)

    def passed(self, index: int) -> list[int]:
        """A gradient was computed. Returns what is to be sent now: nothing, the parameter, or its whole group.

        Raises TooManyPasses (an AssertionError).
        """
        if self._left[index] <= 0:
            raise TooManyPasses(
                "Gradients were computed more than backward_passes_per_step times before call to step(). "
                "Increase backward_passes_per_step to accumulate gradients locally. (A module that is used twice under "
                "torch.utils.checkpoint counts twice with use_reentrant=True; give it use_reentrant=False.)"
            )
        self._left[index] -= 1
        return self._complete(index) if self._left[index] == 0 else []

    def _complete(self, index: int) -> list[int]:
        number = self._group_of.get(index)
        if number is None:
            self._sent.add(index)
            return [index]
        self._due[index] = None
        group = self.groups[number]
        if any(member not in self._due for member in group):
            return []
        for member in group:
            del self._due[member]
        self._sent.update(group)
        return group

    def flush(self) -> list[list[int]]:
        """What has not been sent in this step, group by group in a fixed order; it counts as sent then."""
        missing = [index for index in self._left if index not in self._sent]
        parts: list[list[int]] = []
        done: set[int] = set()
        for index in missing:
            if index in done:
                continue
            number = self._group_of.get(index)
            part = [index] if number is None else [member for member in self.groups[number] if member not in self._sent]
            parts.append(part)
            done.update(part)
        self._sent.update(done)
        self._due.clear()
        return parts

    def restart(self) -> None:
        """A step is over."""
        self._left = dict.fromkeys(self._left, self.passes)
        self._due.clear()
        self._sent.clear()
