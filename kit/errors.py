"""Everything offramp raises on purpose, one tree, sorted by what the operator can do about it.

    OfframpError                 exit code 1
    ├── InputError           2   an argument is wrong: repair the call
    ├── ProfileError         3   offramp.toml can't be used: repair the file or the environment
    ├── ConnectError         4   a server can't be reached, or a group can't be read: examine address, network, rights
    │   └── AuthenticationFailed  5   it was reached and refused the credentials
    ├── WrongCluster         6   another cluster answered than the profile expects: nothing was done
    ├── ReadError            7   the cluster answered, but what it holds can't be read
    │   ├── NotFound         8   the group, topic, plan or run that was named doesn't exist
    │   └── PartialRead     12   the answer was printed, but some of it could not be read: see the errors
    ├── HistoryError         9   a stored history can't be appended to or loaded
    ├── LabError            10   a process of the lab did not start, answer or stop
    │   └── SetupError      11   a part to install (jars, Java, browser) can't be had
    ├── PlanError           13   a plan can't be made, its file can't be read or was edited: plan again
    │   ├── NothingToDo     14   the cluster is already as desired
    │   └── UnsafePlan      15   a rule forbids it: repair what the rule names, or override it by its name
    ├── ApprovalError       16   the plan has no approval that holds: approve the plan that is meant
    │   └── StalePlan       17   what the plan observed has changed: nothing was done; plan again
    ├── RunError            18   a run ended unverified: see its evidence; resume it or undo it
    │   ├── StepFailed      19   a step failed by an error that offramp does not expect: the evidence has the traceback
    │   ├── TargetBusy      20   another run works on the same group or cluster: wait for it, or stop it
    │   ├── LockLost        21   the run lost its lock and stopped: see which run has it, then resume or undo
    │   ├── Stopped         22   the run was asked to stop, and did: resume it or undo it
    │   └── IllegalMove     23   a run in this state can't do that; the message reports what it can do
    ├── EvidenceError       24   a run's evidence can't be written or read, or was edited
    ├── HandOverError       25   `offramp consume` can't hand records over, or note them: they are not committed
    │   ├── OutputClosed    26   the reader of its output closed the output too early
    │   └── ChildEnded      27   the program that gets the records ended badly; the message has its exit code
    └── StoresDiffer        28   ZooKeeper and KRaft were read, and values have diverged: the answer was printed

The numbers are the exit codes of the command line. Messages report which cluster, group or topic-partition, what was
expected, what was found and what to do; they never hold a secret.
"""

from __future__ import annotations


class OfframpError(Exception):
    """Base of the tree; ``exit_code`` is what the command line ends with."""

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows of it: one line, as the command line does. IPython asks for it by this name."""
        return [f"{type(self).__name__}: {self}"]


class InputError(OfframpError):
    exit_code = 2


class ProfileError(OfframpError):
    exit_code = 3


class ConnectError(OfframpError):
    exit_code = 4


class AuthenticationFailed(ConnectError):
    exit_code = 5


class WrongCluster(OfframpError):
    exit_code = 6


class ReadError(OfframpError):
    exit_code = 7


class NotFound(ReadError):
    exit_code = 8


class PartialRead(ReadError):
    exit_code = 12


class HistoryError(OfframpError):
    exit_code = 9


class LabError(OfframpError):
    exit_code = 10


class SetupError(LabError):
    exit_code = 11


class PlanError(OfframpError):
    exit_code = 13


class NothingToDo(PlanError):
    exit_code = 14


class UnsafePlan(PlanError):
    exit_code = 15


class ApprovalError(OfframpError):
    exit_code = 16


class StalePlan(ApprovalError):
    exit_code = 17


class RunError(OfframpError):
    exit_code = 18


class StepFailed(RunError):
    exit_code = 19


class TargetBusy(RunError):
    exit_code = 20


class LockLost(RunError):
    exit_code = 21


class Stopped(RunError):
    exit_code = 22


class IllegalMove(RunError):
    exit_code = 23


class EvidenceError(OfframpError):
    exit_code = 24


class HandOverError(OfframpError):
    exit_code = 25


class OutputClosed(HandOverError):
    exit_code = 26


class ChildEnded(HandOverError):
    exit_code = 27


class StoresDiffer(OfframpError):
    exit_code = 28
