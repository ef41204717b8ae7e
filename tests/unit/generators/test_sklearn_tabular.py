"""The generator: the same for a seed, in the stated shares, right scripts right in form and broken ones broken."""

from __future__ import annotations

import ast
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlwright_trainer.errors import UserError
from mlwright_trainer.generators import GENERATORS, generate
from mlwright_trainer.generators.bugs import BUGS, draw_bug
from mlwright_trainer.generators.families import FAMILIES
from mlwright_trainer.generators.script import Script
from mlwright_trainer.generators.sklearn_tabular import (
    BROKEN_FRACTION,
    LabelledExample,
    labelled_examples,
    right_script,
)

COUNT = 4000


@pytest.fixture(scope="module")
def many() -> list[LabelledExample]:
    return labelled_examples(0, COUNT)


def test_the_same_seed_gives_the_same_examples() -> None:
    assert labelled_examples(5, 50) == labelled_examples(5, 50)


def test_another_seed_gives_other_examples() -> None:
    assert labelled_examples(5, 50) != labelled_examples(6, 50)


def test_more_examples_begin_with_the_fewer() -> None:
    assert labelled_examples(5, 80)[:50] == labelled_examples(5, 50)


def test_the_global_random_state_is_left_alone() -> None:
    random.seed(1)
    state = random.getstate()
    labelled_examples(5, 50)
    assert random.getstate() == state


def test_45_in_100_are_broken(many: list[LabelledExample]) -> None:
    broken = sum(bool(example.bug) for example in many) / COUNT
    assert broken == pytest.approx(BROKEN_FRACTION, abs=4 * 0.5 / COUNT**0.5)


def test_every_family_comes_as_often_as_its_share_says(many: list[LabelledExample]) -> None:
    counts = Counter(example.family for example in many)
    assert sum(family.share for family in FAMILIES) == pytest.approx(1)
    for family in FAMILIES:
        assert counts[family.name] / COUNT == pytest.approx(family.share, abs=4 * 0.5 / COUNT**0.5)


def test_every_bug_comes(many: list[LabelledExample]) -> None:
    assert {example.bug for example in many} == {"", *BUGS}


def test_weak_families_come_more_often_than_strong_ones(many: list[LabelledExample]) -> None:
    """Else reinforcement learning would have nothing to re-weight."""
    strong = {"random_forest", "extra_trees", "gradient_boosting", "histogram_boosting"}
    assert sum(example.family in strong for example in many) < 0.35 * COUNT


def test_every_script_parses(many: list[LabelledExample]) -> None:
    for example in many:
        ast.parse(example.example.completion)


def test_most_scripts_are_distinct(many: list[LabelledExample]) -> None:
    assert len({example.example.completion for example in many}) > 0.8 * COUNT


def test_all_have_the_same_prompt_which_names_no_task(many: list[LabelledExample]) -> None:
    assert {example.example.prompt for example in many} == {"# Area under the ROC curve"}


def test_no_right_script_names_a_column_or_a_task(many: list[LabelledExample]) -> None:
    texts = "".join(example.example.completion for example in many if not example.bug)
    for word in ("churn", "account", "minutes", '"state"', '"id"', '"target"', '"label"'):
        assert word not in texts


def test_a_right_script_reads_its_names_from_the_sample_and_writes_the_submission(
    many: list[LabelledExample],
) -> None:
    for example in many:
        if not example.bug:
            text = example.example.completion
            assert "key, target = sample.columns" in text
            assert text.endswith('sample.to_csv("submission.csv", index=False)\n')


def _undefined_names(source: str) -> set[str]:
    """Names that are read and neither bound in the script nor built in."""
    tree = ast.parse(source)
    bound = {alias.asname or alias.name for node in ast.walk(tree) for alias in getattr(node, "names", [])}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound |= {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {name.id for name in names} - bound - {"print", "len", "range"}


def test_right_scripts_use_only_names_that_they_define(many: list[LabelledExample]) -> None:
    for example in many:
        if not example.bug:
            assert _undefined_names(example.example.completion) == set()


@pytest.mark.parametrize("bug", ["missing_import", "undefined_name"])
def test_a_name_is_missing_where_the_label_says_so(bug: str, many: list[LabelledExample]) -> None:
    texts = [example.example.completion for example in many if example.bug == bug]
    assert texts
    assert all(_undefined_names(text) for text in texts)


@pytest.mark.parametrize("bug", sorted(BUGS))
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_a_bug_changes_every_script_that_it_can_be_put_into(bug: str, seed: int) -> None:
    rng = random.Random(seed)
    script = right_script(rng.choice(FAMILIES), rng)
    assert BUGS[bug].put_into(script, rng).text() != script.text()


def test_a_model_that_ignores_features_gets_no_bug_in_them() -> None:
    rng = random.Random(0)
    drawn = {draw_bug(rng, features_matter=False) for _ in range(3000)}
    assert drawn == {name for name, bug in BUGS.items() if not bug.in_features}


def test_models_that_refuse_missing_values_never_get_them(many: list[LabelledExample]) -> None:
    refusing = {family.name for family in FAMILIES if not family.takes_missing}
    for example in many:
        if example.family in refusing and not example.bug:
            assert ".fillna(" in example.example.completion


def test_imports_come_first_modules_before_names() -> None:
    script = Script(
        imports=("from b import c", "import a"),
        load=("1",), features=("2",), target=("3",), model=("4",), validate=("5",), fit=("6",),
        predict=("7",), write=("8",),
    )  # fmt: skip
    assert script.text() == "import a\nfrom b import c\n\n1\n2\n3\n4\n5\n6\n7\n8\n"


def test_swapping_what_is_not_there_is_an_error() -> None:
    script = right_script(FAMILIES[0], random.Random(0))
    with pytest.raises(ValueError, match="'nothing' is not in fit"):
        script.swap("fit", "nothing", "something")


def test_a_generator_is_found_by_its_name() -> None:
    assert generate("sklearn-tabular", seed=3, count=7) == GENERATORS["sklearn-tabular"].examples(3, 7)


def test_an_unknown_generator_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UserError, match=r"'sklearn-tabula' is not .*did you mean sklearn-tabular\?"):
        generate("sklearn-tabula", seed=0, count=1)


def test_an_unknown_generator_unlike_any_is_refused_with_the_list() -> None:
    with pytest.raises(UserError, match="there are: sklearn-tabular"):
        generate("x", seed=0, count=1)
