"""That RL asks with the prompt that fine-tuning taught; with another one the model would start out confused."""

from __future__ import annotations

from mlwright_trainer.collection.prompts import draft_messages
from mlwright_trainer.collection.templating import templates_of
from mlwright_trainer.errors import UserError
from mlwright_trainer.learning.examples import load_examples
from mlwright_trainer.runs.plan import RunPlan
from mlwright_trainer.runs.wiring import prompt_facts


def draft_prompt(plan: RunPlan, task: str) -> str:
    """What a draft of `task` is asked with, as one text."""
    messages = draft_messages(prompt_facts(plan.tasks[task]), templates_of(plan.spec.prompts.templates))
    return "".join(message["content"] for message in messages)


def require_known_prompt(plan: RunPlan, task: str) -> None:
    """Raises UserError unless the draft prompt of `task` is the prompt of some of the fine-tuning examples."""
    tuning = plan.spec.fine_tuning
    assert tuning is not None
    asked = draft_prompt(plan, task)
    taught = {
        example.prompt for example in load_examples(tuning, base=plan.tasks[task].root, seed=plan.spec.seed)
    }
    if asked not in taught:
        raise UserError(
            f"spec.prompts.templates.draft: task {task} is asked with {asked!r}, but the examples of fineTuning "
            f"have {sorted(taught)[0]!r}"
        )
