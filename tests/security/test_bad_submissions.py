"""Every way to hand in a bad submission that we could think of, and the one line that it is refused with."""

from __future__ import annotations

import codecs
import os
import socket
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from mlwright_api.mltask import MetricSpec, MLTaskSpec, Split, SubmissionKind, SubmissionSpec, TaskReference
from mlwright_api.results import GraderResult, Verdict
from mlwright_sandbox.answers import TaskAnswers, build_answers
from mlwright_sandbox.grading import grade_bytes, grade_folder
from mlwright_sandbox.reasons import REASON_CHARACTERS

SPLITS = (Split.REWARD, Split.SELECTION)


def answers_of(
    metric: str, kind: SubmissionKind, targets: list[str], rows: list[str], sample: list[str]
) -> TaskAnswers:
    """Ids are 1, 2, ...; every other row is Reward, the others Selection."""
    spec = MLTaskSpec(
        title="task",
        description="-",
        metric=MetricSpec(name=metric),
        submission=SubmissionSpec(target_columns=targets, kind=kind),
        reference=TaskReference(baseline=0),
    )
    header = ",".join(["id", *targets])
    private = [f"{i},{row},{('Reward', 'Selection')[i % 2]}" for i, row in enumerate(rows, start=1)]
    shown = [f"{i},{row}" for i, row in enumerate(sample, start=1)]
    return build_answers(
        spec,
        sample="\n".join([header, *shown]).encode(),
        private="\n".join([f"{header},split", *private]).encode(),
        complete=True,
    )


CHURN = answers_of(
    "roc_auc", SubmissionKind.PROBABILITIES, ["churn"], ["0", "0", "1", "1", "0", "1"], ["0.5"] * 6
)
LEAVES = answers_of(
    "log_loss",
    SubmissionKind.PROBABILITIES,
    ["acer", "ilex", "tilia"],
    ["1,0,0", "0,1,0", "0,0,1", "1,0,0"],
    ["0.2,0.3,0.5"] * 4,
)
PRICES = answers_of("rmse", SubmissionKind.VALUES, ["price"], ["1.5", "2.5", "3", "4"], ["0"] * 4)
TRIPS = answers_of("rmsle", SubmissionKind.VALUES, ["seconds"], ["10", "20", "30", "40"], ["0"] * 4)
STARS = answers_of("quadratic_weighted_kappa", SubmissionKind.LABELS, ["stars"], list("123451"), ["3"] * 6)
FLOWERS = answers_of(
    "accuracy",
    SubmissionKind.LABELS,
    ["species"],
    ["setosa", "virginica", "versicolor", "setosa"],
    ["setosa"] * 4,
)
LEFT = answers_of("f1", SubmissionKind.LABELS, ["left"], ["0", "0", "1", "1"], ["0"] * 4)
TASTE = answers_of("pearson", SubmissionKind.VALUES, ["taste"], ["1", "2", "3", "5"], ["1", "2", "3", "4"])
SONGS = answers_of("map_at_k", SubmissionKind.LABELS, ["songs"], ["a b", "c", "b", "a"], ["a b c"] * 4)
ALL = [CHURN, LEAVES, PRICES, TRIPS, STARS, FLOWERS, LEFT, TASTE, SONGS]


@dataclass(frozen=True)
class Bad:
    """Content that must be refused with exactly this reason."""

    name: str
    task: TaskAnswers
    content: bytes
    reason: str


def churn(*values: str, header: str = "id,churn") -> bytes:
    """A submission of the churn task with these six values."""
    return "\n".join([header, *(f"{i},{value}" for i, value in enumerate(values, start=1))]).encode()


def rows(header: str, *lines: str) -> bytes:
    return "\n".join([header, *lines]).encode()


GOOD_CHURN = churn("0.1", "0.2", "0.9", "0.8", "0.3", "0.7")

CONTENTS = [
    Bad(
        "a flood of rows",
        CHURN,
        b"id,churn\n" + b"1,0\n" * 4_000_000,
        "submission.csv has 10,024 rows or more where 6 are expected",
    ),
    Bad(
        "a flood of columns",
        CHURN,
        b"id,churn" + b"," * 10_000_000 + b"\n",
        "submission.csv has 10,000,002 columns where 2 are expected",
    ),
    Bad(
        "a flood of digits",
        PRICES,
        rows("id,price", "1,1", "2," + "9" * 1_000_000, "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '9999999999999999999…', too large",
    ),
    Bad("empty", CHURN, b"", "submission.csv is empty"),
    Bad("only blanks", CHURN, b" \r\n\t\n  ", "submission.csv is empty"),
    Bad("only a byte-order mark", CHURN, codecs.BOM_UTF8, "submission.csv is empty"),
    Bad("header only", CHURN, b"id,churn\n", "submission.csv has a header and no rows"),
    Bad("header and blank lines", CHURN, b"id,churn\r\n\r\n\r\n", "submission.csv has a header and no rows"),
    Bad(
        "no header",
        CHURN,
        b"1,0.1\n2,0.2\n3,0.9\n4,0.8\n5,0.3\n6,0.7\n",
        "submission.csv has no header; the first line must be 'id,churn'",
    ),
    Bad(
        "UTF-16 with a mark",
        CHURN,
        GOOD_CHURN.decode().encode("utf-16"),
        "submission.csv is UTF-16 text (byte 0); write plain CSV text in UTF-8",
    ),
    Bad(
        "UTF-16 without a mark",
        CHURN,
        GOOD_CHURN.decode().encode("utf-16-le"),
        "submission.csv has a NUL byte at byte 1; write plain CSV text in UTF-8",
    ),
    Bad(
        "UTF-32",
        CHURN,
        GOOD_CHURN.decode().encode("utf-32"),
        "submission.csv is UTF-32 text (byte 0); write plain CSV text in UTF-8",
    ),
    Bad(
        "Latin-1",
        FLOWERS,
        "id,species\n1,sétosa\n".encode("latin-1"),
        "submission.csv is not UTF-8: byte 14 is 0xe9; write it with encoding='utf-8'",
    ),
    Bad(
        "not UTF-8 after a mark",
        CHURN,
        codecs.BOM_UTF8 + b"id,churn\n1,\xff\n",
        "submission.csv is not UTF-8: byte 14 is 0xff; write it with encoding='utf-8'",
    ),
    Bad(
        "a NUL byte",
        CHURN,
        GOOD_CHURN.replace(b"0.9", b"0.\x00"),
        "submission.csv has a NUL byte at byte 25; write plain CSV text in UTF-8",
    ),
    Bad(
        "a sparse hole",
        CHURN,
        GOOD_CHURN + bytes(4096),
        "submission.csv has a NUL byte at byte 44; write plain CSV text in UTF-8",
    ),
    Bad(
        "gzip",
        CHURN,
        b"\x1f\x8b\x08\x00" + b"x" * 20,
        "submission.csv is gzip-compressed (byte 0); write plain CSV text in UTF-8",
    ),
    Bad(
        "zip",
        CHURN,
        b"PK\x03\x04" + b"x" * 20,
        "submission.csv is a zip archive or a spreadsheet (byte 0); write plain CSV text in UTF-8",
    ),
    Bad(
        "Parquet",
        CHURN,
        b"PAR1" + b"x" * 20,
        "submission.csv is a Parquet file (byte 0); write plain CSV text in UTF-8",
    ),
    Bad(
        "NumPy",
        CHURN,
        b"\x93NUMPY\x01\x00",
        "submission.csv is a NumPy file (byte 0); write plain CSV text in UTF-8",
    ),
    Bad(
        "a pickle",
        CHURN,
        b"\x80\x04\x95" + b"x" * 20,
        "submission.csv is a pickle (byte 0); write plain CSV text in UTF-8",
    ),
    Bad(
        "JSON",
        CHURN,
        b'{"id": [1, 2], "churn": [0.1, 0.2]}',
        "submission.csv has no columns 'id', 'churn'; its columns are '{\"id\": [1', '2]', "
        "'\"churn\": [0.1' and 1 more",
    ),
    Bad(
        "a traceback",
        CHURN,
        b"Traceback (most recent call last):\n  File x\n",
        "submission.csv has no columns 'id', 'churn'; its columns are 'Traceback (most recent call last):'",
    ),
    Bad(
        "semicolons",
        CHURN,
        GOOD_CHURN.replace(b",", b";"),
        "submission.csv has its columns separated by semicolons; write commas (sep=',')",
    ),
    Bad(
        "tabs",
        CHURN,
        GOOD_CHURN.replace(b",", b"\t"),
        "submission.csv has its columns separated by tabs; write commas (sep=',')",
    ),
    Bad(
        "bars",
        CHURN,
        GOOD_CHURN.replace(b",", b"|"),
        "submission.csv has its columns separated by bars; write commas (sep=',')",
    ),
    Bad(
        "spaces",
        CHURN,
        GOOD_CHURN.replace(b",", b" "),
        "submission.csv has no columns 'id', 'churn'; its columns are 'id churn'",
    ),
    Bad(
        "the data frame's index",
        CHURN,
        b",id,churn\n0,1,0.5\n",
        "submission.csv has the extra column '', the data frame's index; write it with index=False",
    ),
    Bad(
        "the index under its name",
        CHURN,
        b"index,id,churn\n0,1,0.5\n",
        "submission.csv has the extra column 'index', the data frame's index; write it with index=False",
    ),
    Bad(
        "an extra column",
        CHURN,
        b"id,churn,comment\n1,0.5,hello\n",
        "submission.csv has the extra column 'comment'; write only 'id', 'churn' (and index=False)",
    ),
    Bad(
        "all columns of the test table",
        CHURN,
        b"id,age,plan,calls,minutes,churn\n1,2,3,4,5,6\n",
        "submission.csv has the extra columns 'age', 'plan', 'calls' and 1 more; write only 'id', "
        "'churn' (and index=False)",
    ),
    Bad(
        "a column twice",
        CHURN,
        b"id,churn,churn\n1,0.5,0.6\n",
        "submission.csv has the column 'churn' more than once",
    ),
    Bad(
        "another case",
        CHURN,
        GOOD_CHURN.replace(b"churn", b"Churn"),
        "submission.csv has no column 'churn'; is 'Churn' meant?",
    ),
    Bad(
        "a column misspelt",
        CHURN,
        GOOD_CHURN.replace(b"churn", b"chrun"),
        "submission.csv has no column 'churn'; is 'chrun' meant?",
    ),
    Bad(
        "another name of the target",
        CHURN,
        GOOD_CHURN.replace(b"churn", b"prediction"),
        "submission.csv has no column 'churn'; its columns are 'id', 'prediction'",
    ),
    Bad("no target", CHURN, b"id\n1\n2\n", "submission.csv has no column 'churn'; its columns are 'id'"),
    Bad("no id", CHURN, b"churn\n0.1\n0.2\n", "submission.csv has no column 'id'; its columns are 'churn'"),
    Bad(
        "a class is missing",
        LEAVES,
        b"id,acer,ilex\n1,0.5,0.5\n",
        "submission.csv has no column 'tilia'; its columns are 'id', 'acer', 'ilex'",
    ),
    Bad(
        "a short row",
        CHURN,
        GOOD_CHURN.replace(b"3,0.9", b"3"),
        "submission.csv: line 4 has 1 field, the header has 2",
    ),
    Bad(
        "a long row",
        CHURN,
        GOOD_CHURN.replace(b"3,0.9", b"3,0,9"),
        "submission.csv: line 4 has 3 fields, the header has 2",
    ),
    Bad(
        "an open quote",
        CHURN,
        GOOD_CHURN.replace(b"0.9", b'"0.9'),
        "submission.csv: line 7: a quoted field never ends",
    ),
    Bad(
        "text after a quote",
        CHURN,
        GOOD_CHURN.replace(b"0.9", b'"0"9'),
        "submission.csv: line 4: a closing quote is not followed by a comma or the end of the line",
    ),
    Bad(
        "a huge field",
        CHURN,
        GOOD_CHURN.replace(b"0.9", b"9" * (2 << 20)),
        "submission.csv: line 4: a field has more than 1.0 MiB",
    ),
    Bad(
        "a missing id",
        CHURN,
        GOOD_CHURN.replace(b"\n6,0.7", b""),
        "submission.csv has 5 rows where 6 are expected: 1 id is missing ('6')",
    ),
    Bad(
        "most ids missing",
        CHURN,
        b"id,churn\n4,0.5\n",
        "submission.csv has 1 row where 6 are expected: 5 ids are missing ('1', '2', '3' and 2 more)",
    ),
    Bad(
        "an unknown id",
        CHURN,
        GOOD_CHURN + b"\n7,0.5",
        "submission.csv has 7 rows where 6 are expected: 1 id is unknown ('7')",
    ),
    Bad(
        "another id",
        CHURN,
        GOOD_CHURN.replace(b"6,", b"60,"),
        "submission.csv: 1 id is missing ('6'); 1 id is unknown ('60')",
    ),
    Bad(
        "a repeated id",
        CHURN,
        GOOD_CHURN + b"\n1,0.1",
        "submission.csv has 7 rows where 6 are expected: 1 id is repeated ('1' on lines 2 and 8)",
    ),
    Bad(
        "a repeated id for a missing one",
        CHURN,
        GOOD_CHURN.replace(b"6,", b"5,"),
        "submission.csv: 1 id is missing ('6'); 1 id is repeated ('5' on lines 6 and 7)",
    ),
    Bad(
        "an id twice, once as float",
        CHURN,
        GOOD_CHURN + b"\n1.0,0.1",
        "submission.csv has 7 rows where 6 are expected: 1 id is repeated ('1' on lines 2 and 8)",
    ),
    Bad(
        "ids from zero",
        CHURN,
        b"id,churn\n0,0.1\n1,0.2\n2,0.9\n3,0.8\n4,0.3\n5,0.7\n",
        "submission.csv: 1 id is missing ('6'); 1 id is unknown ('0')",
    ),
    Bad(
        "ids of the training rows",
        CHURN,
        b"id,churn\n101,0.1\n102,0.2\n103,0.3\n104,0.4\n",
        "submission.csv has none of the 6 ids that are expected: 'id' must be copied from "
        "sample_submission.csv ('1', '2', '3' and 3 more), not '101', '102', '103' and 1 more",
    ),
    Bad(
        "an empty id",
        CHURN,
        GOOD_CHURN.replace(b"6,", b","),
        "submission.csv: 1 id is missing ('6'); 1 id is unknown ('')",
    ),
    Bad(
        "a fractional id",
        CHURN,
        GOOD_CHURN.replace(b"6,", b"6.5,"),
        "submission.csv: 1 id is missing ('6'); 1 id is unknown ('6.5')",
    ),
    Bad(
        "an id in scientific notation",
        CHURN,
        GOOD_CHURN.replace(b"6,", b"6e0,"),
        "submission.csv: 1 id is missing ('6'); 1 id is unknown ('6e0')",
    ),
    Bad(
        "ids with a sign",
        CHURN,
        GOOD_CHURN.replace(b"6,", b"+6,"),
        "submission.csv: 1 id is missing ('6'); 1 id is unknown ('+6')",
    ),
    Bad(
        "NaN",
        CHURN,
        churn("0.1", "nan", "0.9", "0.8", "0.3", "0.7"),
        "submission.csv: line 3: 'churn' is 'nan', a missing value",
    ),
    Bad(
        "an empty cell",
        CHURN,
        churn("0.1", "", "0.9", "0.8", "0.3", "0.7"),
        "submission.csv: line 3: 'churn' is empty",
    ),
    Bad(
        "None",
        CHURN,
        churn("0.1", "None", "0.9", "0.8", "0.3", "0.7"),
        "submission.csv: line 3: 'churn' is 'None', a missing value",
    ),
    Bad(
        "infinity",
        CHURN,
        churn("0.1", "0.2", "inf", "0.8", "0.3", "0.7"),
        "submission.csv: line 4: 'churn' is 'inf', infinite",
    ),
    Bad(
        "minus infinity",
        PRICES,
        rows("id,price", "1,1", "2,-Infinity", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '-Infinity', infinite",
    ),
    Bad(
        "too large",
        PRICES,
        rows("id,price", "1,1", "2,1e400", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '1e400', too large",
    ),
    Bad(
        "so large that squares overflow",
        PRICES,
        rows("id,price", "1,1", "2,1e300", "3,1e300", "4,2"),
        "submission.csv: the score is inf, not a finite number (are values far too large?)",
    ),
    Bad(
        "a word",
        PRICES,
        rows("id,price", "1,1", "2,cheap", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is 'cheap', not a number",
    ),
    Bad(
        "hexadecimal",
        PRICES,
        rows("id,price", "1,1", "2,0x10", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '0x10', not a number",
    ),
    Bad(
        "underscores",
        PRICES,
        rows("id,price", "1,1", "2,1_000", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '1_000', not a plain decimal number",
    ),
    Bad(
        "thousands",
        PRICES,
        rows("id,price", "1,1", '2,"1,000"', "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '1,000', not a number; write 1234.5 for 1,234.5",
    ),
    Bad(
        "a decimal comma",
        PRICES,
        rows("id,price", "1,1", '2,"2,5"', "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '2,5', not a number; write 1234.5 for 1,234.5",
    ),
    Bad(
        "Arabic digits",
        PRICES,
        rows("id,price", "1,1", "2,\u0661", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '١', not a plain decimal number",
    ),
    Bad(
        "full-width digits",
        PRICES,
        rows("id,price", "1,1", "2,\uff11", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '１', not a plain decimal number",
    ),
    Bad(
        "a boolean",
        PRICES,
        rows("id,price", "1,1", "2,True", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is 'True', not a number",
    ),
    Bad(
        "complex",
        PRICES,
        rows("id,price", "1,1", "2,(1+2j)", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '(1+2j)', not a number",
    ),
    Bad(
        "a list",
        PRICES,
        rows("id,price", "1,1", "2,[2.5]", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '[2.5]', not a number",
    ),
    Bad(
        "a tensor",
        PRICES,
        rows("id,price", "1,1", "2,tensor(2.5000)", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is 'tensor(2.5000)', not a number",
    ),
    Bad(
        "a formula",
        PRICES,
        rows("id,price", "1,1", "2,=cmd|'/c calc'!A1", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is \"=cmd|'/c calc'!A1\", not a number",
    ),
    Bad(
        "a percentage",
        PRICES,
        rows("id,price", "1,1", "2,20%", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '20%', not a number",
    ),
    Bad(
        "a currency",
        PRICES,
        rows("id,price", "1,1", "2,$5", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '$5', not a number",
    ),
    Bad(
        "terminal escapes",
        PRICES,
        rows("id,price", "1,1", "2,\x1b[2J\x07", "3,1", "4,2"),
        "submission.csv: line 3: 'price' is '\\x1b[2J\\x07', not a number",
    ),
    Bad(
        "above one",
        CHURN,
        churn("0.1", "1.2", "0.9", "0.8", "0.3", "0.7"),
        "submission.csv: line 3: 'churn' is '1.2', not a probability between 0 and 1",
    ),
    Bad(
        "below zero",
        CHURN,
        churn("-0.1", "0.2", "0.9", "0.8", "0.3", "0.7"),
        "submission.csv: line 2: 'churn' is '-0.1', not a probability between 0 and 1",
    ),
    Bad(
        "percent for probabilities",
        CHURN,
        churn("10", "20", "90", "80", "30", "70"),
        "submission.csv: line 2: 'churn' is '10', not a probability between 0 and 1",
    ),
    Bad(
        "rows above one",
        LEAVES,
        rows("id,acer,ilex,tilia", "1,1,1,1", "2,1,0,0", "3,0,1,0", "4,0,0,1"),
        "submission.csv: line 2: the 3 probabilities sum to 3, not to 1 (1 such row)",
    ),
    Bad(
        "rows of zeros",
        LEAVES,
        rows("id,acer,ilex,tilia", "1,0,0,1", "2,0,0,0", "3,0,0,0", "4,1,0,0"),
        "submission.csv: line 3: the 3 probabilities sum to 0, not to 1 (2 such rows)",
    ),
    Bad(
        "negative for RMSLE",
        TRIPS,
        rows("id,seconds", "1,5", "2,-3", "3,8", "4,9"),
        "submission.csv: line 3: 'seconds' is '-3', negative, and rmsle is not defined for negative values",
    ),
    Bad(
        "a rating too high",
        STARS,
        rows("id,stars", "1,1", "2,9", "3,3", "4,4", "5,5", "6,1"),
        "submission.csv: line 3: 'stars' is '9', outside of the ratings 1 to 5",
    ),
    Bad(
        "a rating too low",
        STARS,
        rows("id,stars", "1,1", "2,0", "3,3", "4,4", "5,5", "6,1"),
        "submission.csv: line 3: 'stars' is '0', outside of the ratings 1 to 5",
    ),
    Bad(
        "a rating between",
        STARS,
        rows("id,stars", "1,1", "2,2.4", "3,3", "4,4", "5,5", "6,1"),
        "submission.csv: line 3: 'stars' is '2.4', not a whole rating; round it",
    ),
    Bad(
        "a rating in words",
        STARS,
        rows("id,stars", "1,1", "2,two", "3,3", "4,4", "5,5", "6,1"),
        "submission.csv: line 3: 'stars' is 'two', not a number",
    ),
    Bad(
        "codes for names",
        FLOWERS,
        rows("id,species", "1,0", "2,2", "3,1", "4,0"),
        "submission.csv: line 2: 'species' is '0', not one of the labels 'setosa', 'versicolor', 'virginica'",
    ),
    Bad(
        "names misspelt",
        FLOWERS,
        rows("id,species", "1,Setosa", "2,Virginica", "3,Versicolor", "4,setosa"),
        "submission.csv: line 2: 'species' is 'Setosa', not one of the labels 'setosa', "
        "'versicolor', 'virginica'; is 'setosa' meant?",
    ),
    Bad(
        "a name missing",
        FLOWERS,
        rows("id,species", "1,setosa", "2,", "3,virginica", "4,setosa"),
        "submission.csv: line 3: 'species' is empty",
    ),
    Bad(
        "a name NaN",
        FLOWERS,
        rows("id,species", "1,setosa", "2,nan", "3,virginica", "4,setosa"),
        "submission.csv: line 3: 'species' is 'nan', a missing value",
    ),
    Bad(
        "probabilities for labels",
        LEFT,
        rows("id,left", "1,0.1", "2,0.2", "3,0.8", "4,0.9"),
        "submission.csv: line 2: 'left' is '0.1', not a whole number; the labels are '0', '1'",
    ),
    Bad(
        "a third label",
        LEFT,
        rows("id,left", "1,0", "2,2", "3,1", "4,1"),
        "submission.csv: line 3: 'left' is '2', not one of the labels '0', '1'",
    ),
    Bad(
        "booleans for labels",
        LEFT,
        rows("id,left", "1,False", "2,False", "3,True", "4,True"),
        "submission.csv: line 2: 'left' is 'False', not a number; the labels are '0', '1'",
    ),
    Bad(
        "constant for Pearson",
        TASTE,
        rows("id,taste", "1,2", "2,2", "3,2", "4,2"),
        "submission.csv: predictions are constant, for which the metric is not defined",
    ),
    Bad(
        "a ranking in columns",
        SONGS,
        rows("id,first,second", "1,a,b", "2,c,a", "3,b,a", "4,a,b"),
        "submission.csv has no column 'songs'; its columns are 'id', 'first', 'second'",
    ),
]


@pytest.mark.parametrize("bad", CONTENTS, ids=lambda bad: bad.name)
def test_bad_content_is_refused_with_its_reason(bad: Bad) -> None:
    result = grade_bytes(bad.task, bad.content, SPLITS)
    assert result.verdict is Verdict.INVALID
    assert result.reason == bad.reason
    assert result.scores == {}
    assert_fit_for_a_prompt(result)


def assert_fit_for_a_prompt(result: GraderResult) -> None:
    assert "\n" not in result.reason
    assert result.reason.isprintable()
    assert 0 < len(result.reason) <= REASON_CHARACTERS


@dataclass(frozen=True)
class BadFile:
    """A work folder that a script may leave behind, and what the grader says of it."""

    name: str
    make: Callable[[Path], object]
    verdict: Verdict
    reason: str


def write(path: Path, content: bytes = GOOD_CHURN) -> Path:
    path.write_bytes(content)
    return path


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


FILES = [
    BadFile("nothing", lambda work: None, Verdict.MISSING, "submission.csv was not written"),
    BadFile(
        "another name",
        lambda work: write(work / "my_submission.csv"),
        Verdict.MISSING,
        "submission.csv was not written; there is 'my_submission.csv'",
    ),
    BadFile(
        "another case",
        lambda work: write(work / "Submission.CSV"),
        Verdict.MISSING,
        "submission.csv was not written; there is 'Submission.CSV'",
    ),
    BadFile(
        "compressed",
        lambda work: write(work / "submission.csv.gz"),
        Verdict.MISSING,
        "submission.csv was not written; there is 'submission.csv.gz'",
    ),
    BadFile(
        "a name that is no text",
        lambda work: write(Path(os.fsdecode(os.fsencode(work) + b"/\xff\x1b[2J\n.csv"))),
        Verdict.MISSING,
        "submission.csv was not written; there is '\\udcff\\x1b[2J\\n.csv'",
    ),
    BadFile(
        "a link to the answers",
        lambda work: (work / "submission.csv").symlink_to("/etc/passwd"),
        Verdict.INVALID,
        "submission.csv is a symbolic link; write a regular file",
    ),
    BadFile(
        "a link to a file of its own",
        lambda work: (work / "submission.csv").symlink_to(write(work / "real.txt")),
        Verdict.INVALID,
        "submission.csv is a symbolic link; write a regular file",
    ),
    BadFile(
        "a dangling link",
        lambda work: (work / "submission.csv").symlink_to("nowhere"),
        Verdict.INVALID,
        "submission.csv is a symbolic link; write a regular file",
    ),
    BadFile(
        "a link to itself",
        lambda work: (work / "submission.csv").symlink_to("submission.csv"),
        Verdict.INVALID,
        "submission.csv is a symbolic link; write a regular file",
    ),
    BadFile(
        "a hard link",
        lambda work: (work / "submission.csv").hardlink_to(write(work / "other.txt")),
        Verdict.INVALID,
        "submission.csv has 2 hard links; write a file of its own instead of linking",
    ),
    BadFile(
        "a folder",
        lambda work: (work / "submission.csv").mkdir(),
        Verdict.INVALID,
        "submission.csv is a folder; write a regular file",
    ),
    BadFile(
        "a named pipe that nobody writes",
        lambda work: os.mkfifo(work / "submission.csv"),
        Verdict.INVALID,
        "submission.csv is a named pipe; write a regular file",
    ),
    BadFile(
        "a socket",
        lambda work: unix_socket(work / "submission.csv"),
        Verdict.INVALID,
        "submission.csv is a socket; write a regular file",
    ),
    BadFile(
        "a device",
        lambda work: (work / "submission.csv").symlink_to("/dev/zero"),
        Verdict.INVALID,
        "submission.csv is a symbolic link; write a regular file",
    ),
    BadFile(
        "an empty file",
        lambda work: write(work / "submission.csv", b""),
        Verdict.INVALID,
        "submission.csv is empty",
    ),
    BadFile(
        "a terabyte, sparse",
        lambda work: sparse(work / "submission.csv", 1 << 40),
        Verdict.INVALID,
        "submission.csv has 1.0 TiB; at most 16.0 MiB are read",
    ),
    BadFile(
        "one byte too many",
        lambda work: sparse(work / "submission.csv", (16 << 20) + 1),
        Verdict.INVALID,
        "submission.csv has 16.0 MiB; at most 16.0 MiB are read",
    ),
    BadFile(
        "sparse below the cap",
        lambda work: sparse(work / "submission.csv", 16 << 20),
        Verdict.INVALID,
        "submission.csv has a NUL byte at byte 0; write plain CSV text in UTF-8",
    ),
]


def graded(work: Path) -> GraderResult:
    descriptor = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return grade_folder(CHURN, descriptor, SPLITS)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("bad", FILES, ids=lambda bad: bad.name)
def test_a_bad_file_is_refused_with_its_reason(bad: BadFile, tmp_path: Path) -> None:
    bad.make(tmp_path)
    result = graded(tmp_path)
    assert (result.verdict, result.reason) == (bad.verdict, bad.reason)
    assert_fit_for_a_prompt(result)


def test_there_are_at_least_sixty_bad_submissions_and_none_is_listed_twice() -> None:
    contents, files = {bad.name for bad in CONTENTS}, {bad.name for bad in FILES}
    assert (len(contents), len(files)) == (len(CONTENTS), len(FILES))
    assert len(contents) + len(files) >= 60


def test_a_thousand_other_files_do_not_slow_the_search_for_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    for number in range(1000):
        (tmp_path / f"{number}.txt").touch()
    monkeypatch.setattr(os, "scandir", counting(os.scandir, seen))
    assert graded(tmp_path).reason == "submission.csv was not written"
    assert len(seen) <= 256


def counting(
    scandir: Callable[[int], os._ScandirIterator[str]], seen: list[str]
) -> Callable[[int], Counting]:
    return lambda descriptor: Counting(scandir(descriptor), seen)


class Counting:
    """An os.scandir iterator that notes what it yields."""

    def __init__(self, entries: os._ScandirIterator[str], seen: list[str]) -> None:
        self._entries, self._seen = entries, seen

    def __enter__(self) -> Counting:
        return self

    def __exit__(self, *_: object) -> None:
        self._entries.close()

    def __iter__(self) -> Counting:
        return self

    def __next__(self) -> os.DirEntry[str]:
        entry = next(self._entries)
        self._seen.append(entry.name)
        return entry


def test_a_file_that_cannot_be_opened_is_the_scripts_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "submission.csv")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(os, "open", refusing(13))
    result = grade_folder(CHURN, descriptor, SPLITS)
    os.close(descriptor)
    assert result.verdict is Verdict.INVALID
    assert result.reason == "submission.csv cannot be read: Permission denied"


def test_a_machine_without_descriptors_is_not_the_scripts_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "submission.csv")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(os, "open", refusing(24))
    with pytest.raises(OSError, match="Too many open files"):
        grade_folder(CHURN, descriptor, SPLITS)
    os.close(descriptor)


def refusing(number: int) -> Callable[..., int]:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    return refuse


def test_a_file_exchanged_between_look_and_open_is_still_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "submission.csv")
    real = os.stat

    def exchange(name: str, *, dir_fd: int, follow_symlinks: bool) -> os.stat_result:
        found = real(name, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        (tmp_path / "submission.csv").unlink()
        os.mkfifo(tmp_path / "submission.csv")
        return found

    descriptor = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(os, "stat", exchange)
    result = grade_folder(CHURN, descriptor, SPLITS)
    monkeypatch.undo()
    os.close(descriptor)
    assert stat.S_ISFIFO((tmp_path / "submission.csv").stat().st_mode)
    assert result.reason == "submission.csv is a named pipe; write a regular file"


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.spec.metric.name)
@pytest.mark.parametrize(
    "content", [b"", b"\0", b"\xff", b"id\n", b"a,b\n1,2\n", b'"', b",,,\n,,,\n", b"id,id\n1,1\n"]
)
def test_no_kind_of_task_lets_rubbish_through(task: TaskAnswers, content: bytes) -> None:
    result = grade_bytes(task, content, SPLITS)
    assert result.verdict is Verdict.INVALID
    assert_fit_for_a_prompt(result)
