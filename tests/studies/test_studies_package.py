"""`from assetscore import studies` is enough, and costs nothing until something is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from assetscore import studies


@pytest.mark.parametrize("name", studies.__all__)
def test_every_part_is_there(name):
    assert getattr(studies, name).__name__ == f"assetscore.studies.{name}"
    assert name in dir(studies)


def test_an_unknown_part_is_named():
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = studies.nothing


def test_the_package_alone_imports_nothing_heavy():
    code = "import sys; from assetscore import studies; print({'numpy', 'scipy', 'torch', 'flask'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_the_statistics_import_neither_torch_nor_faiss():
    code = (
        "import sys; import assetscore.studies.agreement, assetscore.studies.compare, assetscore.studies.tables; "
        "print({'torch', 'faiss', 'flask', 'matplotlib', 'pyarrow', 'PIL'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
