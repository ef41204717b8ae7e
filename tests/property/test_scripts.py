"""Scripts in and out of answers, and their trees, for whatever a model may write."""

from __future__ import annotations

import io
import random
import tokenize

from hypothesis import assume, given
from hypothesis import strategies as st
from mlwright_trainer.collection.extraction import extract_script
from mlwright_trainer.collection.families import model_family
from mlwright_trainer.collection.parents import Parent, parent_pool
from mlwright_trainer.collection.prompts import choose_prompt, fenced
from mlwright_trainer.collection.static_checks import refuse
from mlwright_trainer.collection.syntax import tree_digest
from mlwright_trainer.collection.templating import filled

LINES = st.sampled_from(
    [
        "import numpy as np",
        "x = [1, 2, 3]",
        "print(f'{x!r}')",
        "def f(a, b=1):",
        "    return a * b",
        "    '''doc'''",
        "if x:",
        "    x = {}",
        "else:",
        "s = '''",
        "```",
        "```python",
        "~~~",
        "'''",
        "# a comment",
        "",
        "    # indented comment",
        "y = 'é{}```'",
        "return",
        "x = (1,",
        "  2)",
    ]
)
SCRIPTS = st.lists(LINES, min_size=1, max_size=25).map("\n".join)
PROGRAMS = st.lists(
    st.sampled_from(
        [
            "import numpy as np",
            "x = [1, 2, 3]",
            "print(f'{x!r}')",
            "def f(a, b=1):\n    'doc'\n    return a * b",
            "class C:\n    x: int = 0",
            "if x:\n    x = {}\nelse:\n    x = {'a': 2}",
            "# a comment",
            "",
            "for i in range(\n    10\n):\n    print(i)  # inside",
            "y = 'é{}`'",
        ]
    ),
    max_size=25,
).map(lambda blocks: "\n".join(["n = 1", *blocks]))
"""Programs that Python accepts, with no string over several lines."""
PROSE = st.lists(
    st.sampled_from(["Sure!", "Here it is:", "", "1. fast", "It prints `x`.", "AUC = 0.9"]), max_size=5
).map("\n".join)


@given(SCRIPTS, PROSE, PROSE, st.sampled_from(["python", "py", "Python3"]))
def test_what_was_fenced_comes_out_as_it_went_in(script: str, before: str, after: str, label: str) -> None:
    wanted = script.lstrip("\n").rstrip()
    assume(wanted)
    answer = f"{before}\n{fenced(script, label)}\n{after}"
    # The fence is longer than any in the script, so that no other reading can be the likelier one.
    assume("~~~" not in script)
    assert extract_script(answer) == f"{wanted}\n"


@given(st.text())
def test_any_text_gives_a_script_or_none_and_any_script_a_verdict(text: str) -> None:
    script = extract_script(text)
    assert script is None or script.endswith("\n")
    reason = refuse(text if script is None else script)
    assert reason is None or reason
    assert model_family(text)


@given(PROGRAMS)
def test_a_bare_program_is_a_script_and_extraction_is_settled_after_one_pass(script: str) -> None:
    once = extract_script(script)
    assert once == script.lstrip("\n").rstrip() + "\n"
    assert extract_script(once) == once
    assert refuse(once) is None


@given(PROGRAMS, st.randoms(use_true_random=False))
def test_comments_blank_lines_and_trailing_blanks_never_change_a_tree(
    script: str, generator: random.Random
) -> None:
    assert tree_digest(script) == tree_digest(noisy(script, generator))


def noisy(script: str, generator: random.Random) -> str:
    """The script with comments, blanks and blank lines where they mean nothing; strings in it are on one line."""
    lines = []
    for line in script.split("\n"):
        lines.append(line + generator.choice(["", "  ", "  # why", "\t"]))
        lines.extend([""] * generator.randrange(2))
    return "# noise\n" + "\n".join(lines)


@given(PROGRAMS)
def test_a_changed_number_is_another_tree(script: str) -> None:
    tokens = list(tokenize.generate_tokens(io.StringIO(script).readline))
    first = next(token for token in tokens if token.type == tokenize.NUMBER)
    lines = script.split("\n")
    line = lines[first.start[0] - 1]
    lines[first.start[0] - 1] = f"{line[: first.start[1]]}9{line[first.start[1] :]}"
    assert tree_digest(script) != tree_digest("\n".join(lines))


@given(
    st.integers(0, 2**31 - 1),
    st.integers(0, 1000),
    st.floats(0, 1),
    st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True),
)
def test_a_choice_of_prompt_is_reproducible_and_near_its_fraction(
    seed: int, update: int, fraction: float, numbers: list[int]
) -> None:
    candidates = [Parent(str(n), "", 0.0, "", f"d{n}", update - 1) for n in numbers]
    shuffled = candidates[::-1]
    pool = parent_pool(candidates, update=update, parent_updates=4)
    again = parent_pool(shuffled, update=update, parent_updates=4)

    def choices(parents: tuple[Parent, ...]) -> list[object]:
        return [
            choose_prompt(seed=seed, update=update, index=i, improve_fraction=fraction, parents=parents)
            for i in range(400)
        ]

    first = choices(pool)
    assert first == choices(again)
    improved = sum(getattr(choice, "kind", "") == "improve" for choice in first)
    # Six standard errors of 400 draws.
    assert abs(improved / 400 - fraction) < 6 * 0.025


@given(st.dictionaries(st.sampled_from(["a", "b_c"]), st.text(), min_size=2), st.text(alphabet="xyz \n}$%"))
def test_values_go_in_verbatim(values: dict[str, str], between: str) -> None:
    template = "{a}" + between + "{b_c}"
    assert filled(template, values) == values["a"] + between + values["b_c"]
