"""Reports of cases that no running cluster has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from kit.errors import InputError
from kit.presentation import report
from kit.presentation.report import _LocalKernel, forget_older, new_folder, write_whole


def test_kernels_of_two_reports_have_sockets_of_their_own():
    kernels = [_LocalKernel(), _LocalKernel()]
    first, second = (Path(kernel.ip).parent for kernel in kernels)
    assert first != second
    assert [folder.stat().st_mode & 0o777 for folder in (first, second)] == [0o700] * 2
    for kernel in kernels:
        kernel.cleanup_ipc_files()
    assert not first.exists()
    assert not second.exists()


def test_it_is_reported_which_cell_begins(tmp_path):
    cells = [new_markdown_cell("# A report"), new_code_cell("n = 1"), new_code_cell("n")]
    kernel = {"name": "python3", "language": "python", "display_name": "Python 3"}
    source = tmp_path / "source.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), source)
    told: list[str] = []
    report._execute(source, tmp_path / "target.ipynb", {"m": 2}, told.append)
    assert (told[-1], len(told)) == ("cell 4 of 4", len(set(told)))
    assert len(nbformat.read(tmp_path / "target.ipynb", 4).cells) == 4


def test_older_reports_of_the_same_cluster_go_and_nothing_else(tmp_path):
    names = [f"2026112{day}T000000Z-{name}" for day in range(4) for name in ("orders", "orders-2")]
    for name in [*names, "history", "20261121T000000Z-group-migration-orders-3713"]:
        (tmp_path / name).mkdir()
        for file in ("groups.html", "groups.ipynb"):
            (tmp_path / name / file).touch()
    (tmp_path / names[0] / "mine.txt").touch()
    forget_older(tmp_path / names[-2], 2)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert set(names) - set(left) == {"20261121T000000Z-orders"}
    assert [path.name for path in (tmp_path / names[0]).iterdir()] == ["mine.txt"]
    assert len(list((tmp_path / "20261121T000000Z-group-migration-orders-3713").iterdir())) == 2


def test_two_reports_at_once_have_folders_of_their_own_and_delete_none_of_the_other(tmp_path):
    at = datetime(2026, 11, 22, 6, 15, tzinfo=UTC)
    first, second = (new_folder(tmp_path, "orders", at) for _ in range(2))
    assert (first.name, second.name) == ("20261122T061500Z-orders", "20261122T061501Z-orders")
    failed = new_folder(tmp_path, "orders", at - timedelta(days=1))
    (first / "groups.html").touch()
    forget_older(first, 1)
    assert not failed.exists()
    assert second.exists(), "it is still being made"
    (second / "groups.html").touch()
    forget_older(first, 1)
    assert first.exists(), "it was made just now, though the other one began later"
    assert not second.exists()


def test_the_target_of_a_link_is_kept(tmp_path):
    """Moved to an archive, with a link where it was."""
    archive, output = tmp_path / "archive", tmp_path / "runs"
    for folder in (archive, output / "20261122T000000Z-orders"):
        folder.mkdir(parents=True)
        (folder / "groups.html").touch()
    (output / "20261121T000000Z-orders").symlink_to(archive)
    forget_older(output / "20261122T000000Z-orders", 1)
    assert (archive / "groups.html").exists()


def test_a_report_that_can_t_be_deleted_is_named(tmp_path):
    for day in (21, 22):
        (tmp_path / f"202611{day}T000000Z-orders").mkdir()
    (tmp_path / "20261121T000000Z-orders" / "groups.html").mkdir()
    with pytest.raises(InputError, match=r"the report is made, but .*20261121T000000Z-orders can't be deleted"):
        forget_older(tmp_path / "20261122T000000Z-orders", 1)


def test_a_page_that_can_t_be_written_is_one_error_and_leaves_no_draft(tmp_path):
    (tmp_path / "report-orders.html").mkdir()
    with pytest.raises(InputError, match=r"report-orders\.html can't be written: Is a directory"):
        write_whole(tmp_path / "report-orders.html", "<p>")
    assert [path.name for path in tmp_path.iterdir()] == ["report-orders.html"]
