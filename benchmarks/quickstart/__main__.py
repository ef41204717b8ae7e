"""The command: carry out what is missing, and write the results after every arm."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from mlwright_trainer.command.live import live_progress
from mlwright_trainer.errors import MlwrightError
from mlwright_trainer.progress import Progress
from rich.console import Console

from benchmarks.quickstart.plans import plan_of
from benchmarks.quickstart.prompts import require_known_prompt
from benchmarks.quickstart.records import ArmRecord
from benchmarks.quickstart.results import COMMAND, Results, collect, write_results
from benchmarks.quickstart.settings import RESULTS, SECOND_TASK, SEEDS, STATE, Arm, Job, Settings, Sizes
from benchmarks.quickstart.state import is_finished
from benchmarks.quickstart.table import markdown
from benchmarks.quickstart.unseen import Unseen, require_unseen
from benchmarks.quickstart.work import carry_out

INTERRUPTED = 130


@dataclass
class Benchmark:
    """One process's work on the benchmark."""

    settings: Settings
    folder: Path
    """Where results go."""
    progress: Progress
    deadline: float = float("inf")
    """`time.monotonic()` after which no new arm is started."""
    failures: dict[Job, str] = field(default_factory=dict)
    unseen: list[Unseen] = field(default_factory=list)
    known: dict[Job, ArmRecord] = field(default_factory=dict)

    def run(self) -> None:
        """Every arm that is not finished yet, in order; one that fails is noted and the next one begins."""
        self._check_training_texts()
        self.write()
        for job in self.settings.jobs():
            if is_finished(self.settings, job):
                continue
            if time.monotonic() >= self.deadline:
                self.progress.say("the time is up: no further arm is started")
                return
            self._attempt(job)
            self.write()

    def _attempt(self, job: Job) -> None:
        self.progress.say(f"== {job}")
        try:
            carry_out(self.settings, job, self.progress)
        except MlwrightError as error:
            self.failures[job] = f"failed: {error}"
            self.progress.say(f"{job} failed: {error}")

    def _check_training_texts(self) -> None:
        """Before anything runs: what fine-tuning teaches has the prompt of RL, and nothing of the second task."""
        self.progress.stage("searching the training texts")
        for job in {(job.seed, job.task): job for job in self.settings.jobs()}.values():
            plan = plan_of(self.settings, job)
            require_known_prompt(plan, job.task)
            if job.task == SECOND_TASK:
                self.unseen.append(require_unseen(plan, plan.tasks[job.task]))

    def write(self) -> Results:
        """The results so far, on disk."""
        results = collect(self.settings, failures=self.failures, unseen=self.unseen, known=self.known)
        write_results(results, markdown(results), self.folder)
        return results


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.quickstart",
        description="The quickstart over seeds, against controls at equal sandbox seconds; resumes where it was.",
        epilog="With --updates, --batch, --samples or --examples it is a try: results stay in the state folder.",
    )
    made.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), metavar="N", help="which seeds")
    made.add_argument("--arms", type=Arm, nargs="+", default=list(Arm), choices=list(Arm), help="which arms")
    made.add_argument("--minutes", type=float, help="start no new arm after so many minutes")
    made.add_argument("--updates", type=int, help="of the RL arm, instead of the quickstart's")
    made.add_argument("--batch", type=int, help="scripts a round")
    made.add_argument("--samples", type=int, help="fresh samples")
    made.add_argument("--examples", type=int, help="fine-tuning examples")
    made.add_argument("--rejection-rate", type=float, default=Settings().rejection_rate)
    made.add_argument("--state", type=Path, default=STATE, help="where the arms' run folders are")
    made.add_argument("--results", type=Path, help="where the results go", metavar="DIR")
    return made


def settings_of(asked: argparse.Namespace) -> Settings:
    return Settings(
        seeds=tuple(asked.seeds),
        arms=tuple(arm for arm in Arm if arm in asked.arms),
        sizes=Sizes(asked.updates, asked.batch, asked.samples, asked.examples),
        rejection_rate=asked.rejection_rate,
        state=asked.state.absolute(),
    )


def main(arguments: list[str] | None = None) -> int:
    """Exit 0 when every arm asked for is finished, 1 when some failed, 2 for the user's mistakes, 130 after Ctrl-C."""
    asked = parser().parse_args(arguments)
    settings = settings_of(asked)
    console = Console(stderr=True)
    folder = asked.results or (RESULTS if settings.sizes.whole else settings.state)
    deadline = float("inf") if asked.minutes is None else time.monotonic() + 60 * asked.minutes
    try:
        with live_progress(console) as progress:
            benchmark = Benchmark(settings, folder, progress, deadline)
            benchmark.run()
    except MlwrightError as error:
        console.print(f"bench-quickstart: {error}", markup=False, highlight=False, soft_wrap=True)
        return error.exit_code
    except KeyboardInterrupt:
        console.print(f"Stopped; finished arms are kept. Go on with: {COMMAND}", highlight=False)
        return INTERRUPTED
    print(markdown(benchmark.write()))
    return 1 if benchmark.failures else 0


if __name__ == "__main__":
    sys.exit(main())
