"""What a script may rely on, and what becomes of the ways in which one ends; with namespaces and with the lock."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mlwright_api.mltask import Split
from mlwright_api.results import MILESTONES
from mlwright_api.rollout import Outcome
from mlwright_sandbox.backend import Finished, TaskMounts
from mlwright_sandbox.local import LocalBackend

pytestmark = pytest.mark.sandbox
Run = Callable[..., Finished]


def test_a_good_script_is_scored_on_reward_and_selection(
    backend: LocalBackend, run: Run, solution: str
) -> None:
    status = run(backend, solution).status
    assert status.outcome is Outcome.SCORED
    assert set(status.scores) == {Split.REWARD, Split.SELECTION}
    assert min(status.scores.values()) > 0.8
    assert status.exit_code == 0


def test_its_milestones_are_those_that_it_reached(backend: LocalBackend, run: Run, solution: str) -> None:
    milestones = run(backend, solution).status.milestones
    assert milestones == [name for name in MILESTONES if name != "validated"]


def test_without_instrumentation_there_are_no_milestones(
    backend: LocalBackend, run: Run, solution: str
) -> None:
    assert run(backend, solution, instrument=False).status.milestones == []


def test_the_submission_is_kept_where_asked_for(backend: LocalBackend, run: Run, solution: str) -> None:
    kept = run(backend, solution, keep_submission=True).submission
    assert kept is not None
    assert kept.startswith(b"id,target\n60,")
    assert run(backend, solution).submission is None


def test_every_second_is_accounted_for(backend: LocalBackend, run: Run) -> None:
    seconds = run(backend, "import time; time.sleep(0.3); sum(range(10**6))").status.seconds
    assert 0.3 <= seconds.execution < 5
    assert 0 < seconds.cpu < seconds.execution
    assert seconds.starting > 0
    assert seconds.queued >= 0


def test_cpu_seconds_include_those_of_processes_that_the_script_started(
    backend: LocalBackend, run: Run
) -> None:
    burning = "    while time.process_time() < 0.3:\n        pass\n    os._exit(0)\n"
    script = f"import os, time\nif os.fork() == 0:\n{burning}os.wait()"
    assert run(backend, script).status.seconds.cpu > 0.25


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(
    backend: LocalBackend, run: Run
) -> None:
    script = "import random, numpy as np\nprint(random.random(), np.random.rand(), hash('text'))"
    outputs = [run(backend, script, seed=seed).status.output_tail for seed in (5, 5, 6)]
    assert outputs[0] == outputs[1] != outputs[2]


def test_the_working_directory_holds_the_script_and_read_only_data(backend: LocalBackend, run: Run) -> None:
    script = "import os\nprint(sorted(os.listdir('.')), sorted(os.listdir('data')))\nopen('data/new', 'w')"
    status = run(backend, script).status
    assert "['data', 'script.py'] ['sample_submission.csv', 'test.csv', 'train.csv']" in status.output_tail
    assert status.outcome is Outcome.ERROR


def test_the_source_on_disk_is_the_original_and_main_is_the_script(backend: LocalBackend, run: Run) -> None:
    script = (
        "import sys, os\n"
        "if __name__ == '__main__':\n"
        "    print(sys.argv, os.path.basename(__file__), open('script.py').read() == open(__file__).read())\n"
        "    import __main__\n"
        "    print(__main__.helper)\n"
        "helper = 1\n"
    ).replace("    import __main__\n    print(__main__.helper)\n", "")
    assert run(backend, script).status.output_tail == "['script.py'] script.py True\n"


def test_the_limit_in_seconds_is_in_the_environment_and_little_else(backend: LocalBackend, run: Run) -> None:
    script = "import os\nprint(os.environ['MLWRIGHT_TIMEOUT_SECONDS'], len(os.environ) < 20)"
    assert run(backend, script).status.output_tail == "20 True\n"


@pytest.mark.parametrize(
    "script", ["import numpy; numpy.random.rand(3)", "import tempfile; tempfile.mkdtemp()"]
)
def test_ordinary_calls_work(backend: LocalBackend, run: Run, script: str) -> None:
    assert run(backend, script).status.exit_code == 0


def test_threads_and_n_jobs_work(backend: LocalBackend, run: Run) -> None:
    script = """
import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import cross_val_score
x = np.random.rand(200, 3)
y = (x[:, 0] > 0.5).astype(int)
print(len(Parallel(n_jobs=2)(delayed(abs)(number) for number in range(5))))
print(cross_val_score(RandomForestClassifier(5, n_jobs=-1), x, y, n_jobs=2, cv=2).shape)
HistGradientBoostingClassifier(max_iter=3).fit(x, y)
"""
    status = run(backend, script).status
    assert status.output_tail == "5\n(2,)\n", status.output_tail


def test_another_python_can_be_started(backend: LocalBackend, run: Run) -> None:
    script = """
import subprocess, sys
print(subprocess.run([sys.executable, "-c", "import numpy; print(numpy.ones(2).sum())"], capture_output=True).stdout)
"""
    assert run(backend, script).status.output_tail == "b'2.0\\n'\n"


def test_a_pool_of_processes_works_with_namespaces(two_slots: LocalBackend, run: Run) -> None:
    script = """
import multiprocessing
def double(x):
    return 2 * x
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(pool.map(double, [1, 2]))
"""
    assert run(two_slots, script).status.output_tail == "[2, 4]\n[2, 4]\n"


@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        ("1 / 0", 1, "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", 3, "exit code 3"),
        ("import sys; sys.exit('no data')", 1, "no data"),
        ("import os; os._exit(9)", 9, "exit code 9"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGUSR1)", None, "signal 10"),
        ("import nothing_of_the_kind", 1, "ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        ("def f(:\n", 1, "SyntaxError: invalid syntax (line 1)"),
    ],
)
def test_a_failure_is_an_error_with_a_reason(
    backend: LocalBackend, run: Run, script: str, code: int | None, reason: str
) -> None:
    status = run(backend, script).status
    assert (status.outcome, status.exit_code, status.reason) == (Outcome.ERROR, code, reason)


def test_a_traceback_shows_the_script_and_not_the_runner(backend: LocalBackend, run: Run) -> None:
    tail = run(backend, "def f():\n    return 1 / 0\nf()").status.output_tail
    assert "line 2, in f" in tail
    assert "return 1 / 0" in tail
    assert "mlwright_sandbox" not in tail


def test_leaving_without_a_submission_is_no_submission(backend: LocalBackend, run: Run) -> None:
    assert run(backend, "pass").status.outcome is Outcome.NO_SUBMISSION


def test_copying_the_sample_is_trivial(backend: LocalBackend, run: Run) -> None:
    script = "import shutil; shutil.copyfile('data/sample_submission.csv', 'submission.csv')"
    assert run(backend, script).status.outcome is Outcome.TRIVIAL


def test_the_tail_is_the_end_of_the_output_and_at_most_two_kilobytes(backend: LocalBackend, run: Run) -> None:
    tail = run(backend, "for n in range(5000): print('line', n, 'é')").status.output_tail
    assert tail.endswith("line 4999 é\n")
    assert 2000 < len(tail.encode()) <= 2048


def test_bytes_that_are_no_text_do_no_harm(backend: LocalBackend, run: Run) -> None:
    tail = run(backend, "import os; os.write(1, bytes(range(256)) * 20)").status.output_tail
    assert len(tail.encode()) <= 2048


def test_what_is_registered_for_the_exit_runs(backend: LocalBackend, run: Run) -> None:
    script = (
        "import atexit, threading\n"
        "atexit.register(print, 'exit')\n"
        "threading.Thread(target=print, args=('t',)).start()\n"
    )
    assert run(backend, script).status.output_tail == "t\nexit\n"


def test_a_timeout_lasts_as_long_as_the_limit(
    backend: LocalBackend, run: Run, make: Callable[..., TaskMounts]
) -> None:
    short = make(timeout=0.5)
    status = run(backend, "print('begun')\nwhile True: pass", on=short).status
    assert status.outcome is Outcome.TIMEOUT
    assert status.seconds.execution == 0.5
    assert status.output_tail == "begun\n"


def test_a_partial_submission_counts_only_where_asked_for(
    backend: LocalBackend, run: Run, solution: str, make: Callable[..., TaskMounts]
) -> None:
    script = solution + "\n1 / 0\n"
    assert run(backend, script).status.outcome is Outcome.ERROR
    partial = run(backend, script, grade_partial=True).status
    assert partial.outcome is Outcome.SCORED
    assert "ZeroDivisionError" in partial.reason


def test_the_receipt_says_what_the_script_could_not_do(backend: LocalBackend, run: Run) -> None:
    receipt = run(backend, "pass").status.isolation
    assert receipt is not None
    assert receipt.backend == backend.kind
    assert receipt.isolated
    assert {check.name for check in receipt.checks} >= {
        "AnswersAbsent",
        "ApiServerUnreachable",
        "NoNetworkSockets",
    }
