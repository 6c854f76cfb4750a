"""What can go wrong, as classes that say how much is broken. Names that Horovod has are Horovod's.

call   ValueError (DuplicateName, NotAMember), NotInitialized, TimeoutError      nothing was queued, or it lives on
op     MismatchError, StallError, UnsupportedError, MemoryError                  this operation failed, on all ranks
world  WorldLostError (PeerLost)                                                 every operation fails until init()
"""

from __future__ import annotations

from typing import NoReturn

from halay._enums import Status


class HorovodInternalError(RuntimeError):
    """A collective failed; elastic training restores the last commit and goes on."""


class MismatchError(HorovodInternalError):
    """The ranks disagree about an operation; all of them get this, and the engine stays usable."""


class StallError(HorovodInternalError):
    """The deadline passed while some ranks had not submitted the operation; the engine stays usable."""


class UnsupportedError(HorovodInternalError):
    """No engine here can do this operation."""


class WorldLostError(HorovodInternalError):
    """The world has ended: somebody died, aborted or shut down. init() starts another one."""


class PeerLost(WorldLostError):
    """A process died. `rank` is its rank."""

    def __init__(self, text: str, rank: int = -1) -> None:
        super().__init__(text)
        self.rank = rank


class NotInitialized(ValueError, HorovodInternalError):
    """Used before init(), after shutdown(), or in a forked child."""


class InvalidArgument(ValueError):
    """The caller's mistake; nothing was queued."""


class DuplicateName(InvalidArgument):
    """An operation of this name is in flight on this rank already."""


class NotAMember(InvalidArgument):
    """This rank is not in the process set."""


class StartTimeout(TimeoutError, ValueError):
    """init() did not find all ranks in time; the text names the missing ones. (Horovod raises ValueError here.)"""


class HostsUpdatedInterrupt(RuntimeError):
    """Hosts came or went. `skip_sync`: they only went, so the state needs no synchronisation."""

    def __init__(self, skip_sync: bool) -> None:
        super().__init__(f"hosts updated (skip_sync={skip_sync})")
        self.skip_sync = skip_sync


def get_version_mismatch_message(name: str, version: str, installed_version: str) -> str:
    """What HorovodVersionMismatchError says."""
    return (
        f"Framework {name} installed with version {installed_version} but found version {version}.\n"
        f"             This can result in unexpected behavior including runtime errors.\n"
        f"             Reinstall with the matching version."
    )


class HorovodVersionMismatchError(ImportError):
    """A framework's version is not the one that was built for. halay builds for none, so nothing here raises it."""

    def __init__(self, name: str, version: str, installed_version: str) -> None:
        super().__init__(get_version_mismatch_message(name, version, installed_version))
        self.name = name
        self.version = version
        self.installed_version = installed_version


_CLASSES: dict[int, type[Exception]] = {
    Status.invalid_argument: InvalidArgument,
    Status.not_initialized: NotInitialized,
    Status.timeout: TimeoutError,
    Status.mismatch: MismatchError,
    Status.stalled: StallError,
    Status.unsupported: UnsupportedError,
    Status.no_memory: MemoryError,
    Status.aborted: WorldLostError,
    Status.internal: RuntimeError,
    Status.duplicate_name: DuplicateName,
    Status.not_a_member: NotAMember,
}


def raise_status(status: int, text: str, rank: int = -1) -> NoReturn:
    """Raises what a halay_status means. `rank` is the rank at fault."""
    if status == Status.peer_lost:
        raise PeerLost(text, rank)
    raise _CLASSES.get(status, RuntimeError)(text)
