"""The default rules and patterns that a server loads are those that the YAML files say."""

import subprocess
import sys

from mendflow.formats.shipped import default_patterns, default_rules
from mendflow.formats.shipped_source import PATH, shipped_text, written_defaults
from tests.patience import PATIENCE_S


def test_the_shipped_file_is_what_the_yaml_files_give() -> None:
    written = written_defaults()
    assert PATH.read_text(encoding="utf-8") == shipped_text(written), "run: python -m mendflow.formats.shipped_source"
    assert (default_rules(), default_patterns()) == (written.rules, written.patterns)


def test_loading_them_reads_no_yaml_and_evaluates_no_condition() -> None:
    script = (
        "import sys; from mendflow.formats import shipped; shipped.default_rules(); shipped.default_patterns();"
        "print(sorted({'yaml', 'cel_expr_python', 'lxml'} & {*sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert loaded.stdout.strip() == "[]"
