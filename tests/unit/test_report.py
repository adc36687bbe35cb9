"""What no report of a running cluster shows."""

from __future__ import annotations

from pathlib import Path

from kit.report import _LocalKernel


def test_kernels_of_two_reports_have_sockets_of_their_own():
    kernels = [_LocalKernel(), _LocalKernel()]
    first, second = (Path(kernel.ip).parent for kernel in kernels)
    assert first != second
    assert [folder.stat().st_mode & 0o777 for folder in (first, second)] == [0o700] * 2
    for kernel in kernels:
        kernel.cleanup_ipc_files()
    assert not first.exists()
    assert not second.exists()
