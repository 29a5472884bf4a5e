"""The parts of a file's name in expressions, as pathlib has them."""

import pytest

from mendflow.core.expressions import ExpressionError, evaluate
from mendflow.core.model.expr import Expr
from mendflow.core.model.values import FileRef, Value

READS = FileRef(sha256="a" * 64, bytes=7, name="sub/a.fastq.gz").as_value()
BARE = FileRef(sha256="b" * 64, bytes=1, name=".hidden").as_value()
DATA: dict[str, Value] = {"inputs": {"reads": READS, "all": [READS, BARE], "row": {"stem": "own", "reads": READS}}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("inputs.reads.stem", "a.fastq"),
        ("inputs.reads.suffix", ".gz"),
        ("inputs.reads.stem + '.bam'", "a.fastq.bam"),
        ("inputs.all.map(f, f.stem)", ["a.fastq", ".hidden"]),
        ("inputs.all.map(f, f.suffix)", [".gz", ""]),
        ("inputs.all.filter(f, f.suffix == '.gz')", [READS]),
        ("inputs.reads.suffix == '.gz' ? inputs.reads : inputs.all[1]", READS),
        ("has(inputs.reads.stem) && inputs.reads.name == 'sub/a.fastq.gz'", True),
        ("inputs.row.stem", "own"),
        ("{'stem': inputs.row.reads.stem, 'file': inputs.row.reads}", {"stem": "a.fastq", "file": READS}),
    ],
)
def test_a_file_has_the_parts_of_its_name_and_is_handed_on_as_it_is(text: str, value: Value) -> None:  # DU-8
    assert evaluate(Expr(text), DATA.__getitem__) == value
    assert DATA["inputs"]["reads"] == READS


@pytest.mark.parametrize("text", ["inputs.reads.suffix == '.gz'", "inputs.reads.stem != 'b'"])
def test_conditions_read_them_too(text: str) -> None:  # DU-8
    assert evaluate(Expr(text), DATA.__getitem__) is True


@pytest.mark.parametrize("text", ["inputs.reads.ext", "inputs.reads.ext + 'x'"])
def test_other_words_for_them_are_told_with_what_to_write(text: str) -> None:  # DU-8
    with pytest.raises(ExpressionError, match=r"without its ending `\S+\.stem`, and its ending `\S+\.suffix`"):
        evaluate(Expr(text), DATA.__getitem__)
