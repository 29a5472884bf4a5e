"""Why failures are left as they are is said alike by the command line and the web app (web/test/recovery.test.ts)."""

import json
from pathlib import Path
from typing import get_args

from mendflow.cli.rule_applying import LEFT_BECAUSE
from mendflow.core.model.rule_views import LeftReason

REASONS: dict[str, str] = json.loads((Path(__file__).parent / "reasons_left.json").read_text())


def test_each_reason_is_said_in_the_words_of_the_table() -> None:
    assert dict(LEFT_BECAUSE) == REASONS
    assert set(REASONS) == set(get_args(LeftReason))
