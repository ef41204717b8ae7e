"""The agent and the grader as real processes in a pod's mounts: what comes out, and that nothing stays unsaid."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

import pytest
from local_pod import SUBMIT, WORK, LocalPod, until
from mlwright_api.mltask import Split
from mlwright_api.results import RUNNER_MESSAGE_BYTES, Limit, Unfinished, Verdict, read_runner_result
from mlwright_api.rollout import Outcome

pytestmark = pytest.mark.sandbox
MakePod = Callable[..., LocalPod]
LOADING = "import os, time\nimport pandas as pd\ntrain = pd.read_csv('data/train.csv')\n"
WAITING = """
print("ready", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
"""
"""Prints, and goes on when the test makes the file `go` in its work folder."""


def test_a_good_script_is_scored_with_a_receipt_that_holds(pod: LocalPod) -> None:
    ended = pod.run(SUBMIT + "print('done')\n")
    assert (ended.verdict.outcome, ended.verdict.reason) == (Outcome.SCORED, "")
    assert (ended.agent_exit, ended.grader_exit) == (0, 0)
    assert ended.graded is not None
    assert ended.graded.scores[Split.REWARD] > 0.9
    result = ended.result
    assert result.output_tail == "done\n"
    assert result.milestones == ["imports", "data_loaded", "submission_written"]
    assert 0 < result.execution_seconds < 30
    assert 0 < result.cpu_seconds < 30
    assert result.starting_seconds > 0
    receipt = result.isolation
    assert (receipt.backend, receipt.user_namespace, receipt.seccomp) == ("Pod", True, True)
    assert receipt.isolated, receipt.checks
    assert {"AnswersAbsent", "ControlUnreachable", "ApiServerUnreachable"} <= {
        each.name for each in receipt.checks
    }
    assert len(ended.message) <= RUNNER_MESSAGE_BYTES


def test_without_the_lock_only_the_control_files_could_be_reached(pod: LocalPod) -> None:
    """The pod holds the rest by itself; a check that cannot fail would say nothing."""
    checks = pod.run("").result.isolation.checks
    assert [check.name for check in checks if check.unlocked is False] == ["ControlUnreachable"]


def test_the_same_request_prints_the_same_in_two_pods(make_pod: MakePod) -> None:
    script = "import random, numpy\nprint(random.random(), numpy.random.rand(), hash('x'), {'a', 'b', 'c'})\n"
    first, second = (make_pod().run(script).result.output_tail for _ in range(2))
    assert first == second


def test_a_script_finds_its_files_its_limit_and_nothing_of_the_pods_environment(pod: LocalPod) -> None:
    script = """
import helper, json, os, sys
print(json.dumps([helper.ANSWER, sorted(os.listdir(".")), sys.argv, os.getcwd(), os.getuid(), dict(os.environ)]))
"""
    pod.ask({"train.py": script, "helper.py": "ANSWER = 42\n"}, entrypoint="train.py")
    ended = pod.end(pod.start_agent(), pod.start_grader())
    answer, files, argv, folder, user, environment = json.loads(ended.result.output_tail)
    assert (answer, argv, folder, user) == (42, ["train.py"], WORK, 65532)
    assert files == ["data", "helper.py", "train.py"]
    assert environment["MLWRIGHT_TIMEOUT_SECONDS"] == "30"
    assert (environment["HOME"], environment["PYTHONHASHSEED"]) == ("/tmp", "0")
    assert not {"KUBERNETES_SERVICE_HOST", "OPERATORS_SECRET"} & set(environment)
    assert ended.verdict.outcome is Outcome.NO_SUBMISSION


@pytest.mark.parametrize(
    ("script", "outcome", "reason"),
    [
        ("raise ValueError('no')", Outcome.ERROR, "ValueError: no"),
        ("import sys; sys.exit(3)", Outcome.ERROR, "exit code 3"),
        ("import os; os.abort()", Outcome.ERROR, "signal 6"),
        ("x = (", Outcome.ERROR, "SyntaxError"),
        (
            "import os; os.symlink('/private/answers.csv', 'submission.csv')",
            Outcome.INVALID_SUBMISSION,
            "symbolic",
        ),
        ("import os; os.mkfifo('submission.csv')", Outcome.INVALID_SUBMISSION, "named pipe"),
        ("x = [bytes(1 << 20) for _ in range(1 << 20)]", Outcome.OUT_OF_MEMORY, "Memory: MemoryError"),
        ("print('x' * (1 << 24))", Outcome.OVER_LIMIT, "Output"),
        ("raise ValueError('\\ud800' + 600 * '\\x1b')", Outcome.ERROR, "ValueError: ?"),
        ("import os\nwhile True: os.fork()", Outcome.OVER_LIMIT, "Processes"),
    ],
    ids=["raises", "exits", "aborts", "no-syntax", "link", "fifo", "memory", "output", "no-text", "forks"],
)
def test_a_bad_script_has_its_outcome_and_a_reason(
    pod: LocalPod, script: str, outcome: Outcome, reason: str
) -> None:
    ended = pod.run(script)
    assert ended.verdict.outcome is outcome, ended.verdict
    assert reason in ended.verdict.reason
    assert (ended.agent_exit, ended.grader_exit) == (0, 0)
    assert len(ended.message) <= RUNNER_MESSAGE_BYTES


@pytest.mark.parametrize(
    ("script", "limit"),
    [
        ("f = open('full', 'wb')\nwhile True: f.write(bytes(1 << 20)); f.flush()", Limit.DISK),
        (
            "import itertools\nfor n in itertools.count(): open(str(n), 'wb').write(bytes(1 << 20))",
            Limit.DISK,
        ),
        ("import itertools, os\nfor n in itertools.count(): os.mkdir(str(n))", Limit.FILES),
    ],
    ids=["one-file", "many-files", "folders"],
)
def test_a_memory_backed_work_folder_has_its_size(make_pod: MakePod, script: str, limit: Limit) -> None:
    pod = make_pod(sized_work=True, changes={"memoryBytes": 1 << 30})
    pod.ask({"script.py": script})
    assert pod.start_agent().wait() == 0
    result = read_runner_result(pod.message.decode())
    assert result is not None
    assert getattr(result, "limit", None) is limit, result


def test_files_in_memory_count_as_the_scripts_memory(make_pod: MakePod) -> None:
    pod = make_pod(sized_work=True, changes={"memoryBytes": 24 << 20})
    pod.ask({"script.py": "import time\nopen('x', 'wb').write(bytes(28 << 20))\ntime.sleep(60)"})
    assert pod.start_agent().wait() == 0
    assert getattr(read_runner_result(pod.message.decode()), "limit", None) is Limit.MEMORY


def test_a_script_is_ended_at_its_limit_and_counts_as_late(make_pod: MakePod) -> None:
    pod = make_pod(changes={"timeoutSeconds": 0.5})
    ended = pod.run(SUBMIT + "import time; time.sleep(600)")
    assert ended.result.timed_out
    assert ended.result.execution_seconds == 0.5
    assert ended.graded is not None
    assert ended.graded.verdict is Verdict.VALID


def test_what_a_script_leaves_running_is_ended_before_the_grader_reads(pod: LocalPod) -> None:
    """A daemon that would replace the submission after the script's end."""
    daemon = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(10 ** 9):
            open("beats", "w").write(str(number))
    os._exit(0)
while not os.path.exists("beats"):
    time.sleep(0.01)
"""
    ended = pod.run(SUBMIT + daemon)
    assert ended.verdict.outcome is Outcome.SCORED
    beats = (pod.root / "work/beats").read_text()
    assert (pod.root / "work/beats").read_text() == beats


def test_progress_is_told_while_the_script_runs(pod: LocalPod) -> None:
    pod.ask({"script.py": LOADING + WAITING})
    agent, grader = pod.start_agent(), pod.start_grader()

    def told() -> bool:
        said = read_runner_result(pod.message.decode())
        return isinstance(said, Unfinished) and said.milestones == ["imports", "data_loaded"]

    until(told, "both milestones in the message")
    (pod.root / "work/go").touch()
    ended = pod.end(agent, grader)
    assert ended.result.milestones == ["imports", "data_loaded"]
    assert ended.result.output_tail == "ready\n"


def test_a_deleted_pod_ends_at_once_and_leaves_what_it_had(pod: LocalPod) -> None:
    pod.ask({"script.py": LOADING + WAITING})
    agent, grader = pod.start_agent(), pod.start_grader()
    until(lambda: b"data_loaded" in pod.message, "a milestone in the message")
    agent.kill(signal.SIGTERM)
    ended = pod.end(agent, grader)
    assert ended.agent_exit == 143
    assert ended.unfinished.milestones == ["imports", "data_loaded"]
    assert (ended.verdict.outcome, ended.verdict.rerun) == (Outcome.INFRASTRUCTURE_FAILED, True)


def test_a_grader_that_still_waits_ends_at_once_when_its_pod_is_deleted(pod: LocalPod) -> None:
    grader = pod.start_grader()
    until(lambda: _has_handler(grader.first, signal.SIGTERM), "a grader with a handler")
    grader.kill(signal.SIGTERM)
    assert grader.wait() == 143


def _has_handler(pid: int, number: signal.Signals) -> bool:
    with open(f"/proc/{pid}/status") as status:  # noqa: PTH123  # of a process
        (caught,) = [line.split()[1] for line in status if line.startswith("SigCgt")]
    return bool(int(caught, 16) & (1 << (number - 1)))


def test_the_grader_takes_over_when_the_agent_is_killed(pod: LocalPod) -> None:
    """As the kernel does for memory: no handler runs, and the lock is free."""
    pod.ask({"script.py": "import os, time\n" + SUBMIT + WAITING})
    agent, grader = pod.start_agent(), pod.start_grader()
    until(lambda: b"submission_written" in pod.message, "a submission")
    agent.kill(signal.SIGKILL)
    ended = pod.end(agent, grader)
    assert ended.agent_exit == 137
    assert ended.graded is not None
    assert ended.graded.verdict is Verdict.VALID
    assert "submission_written" in ended.unfinished.milestones
    assert ended.verdict.outcome is Outcome.INFRASTRUCTURE_FAILED
    assert ended.verdict.reason == "RunnerDied: exit code 137"


def test_a_grader_whose_agent_hangs_gives_up_and_says_so(pod: LocalPod) -> None:
    pod.ask({"script.py": "import os, time\n" + WAITING})
    agent = pod.start_agent()
    until(lambda: b"ready" in pod.message, "a running script")
    grader = pod.start_grader(wait_seconds=0.2)
    assert grader.wait() == 75
    assert "the agent has not ended within 0.2 s" in grader.said
    assert (pod.root / "grader-message").read_text() == '{"failure":"the agent has not ended within 0.2 s"}'
    agent.kill()


@pytest.mark.parametrize(
    ("changes", "files", "reason"),
    [
        ({"seed": "seven"}, {"script.py": ""}, "request: job.json.seed: "),
        ({"entrypoint": "../x.py"}, {"script.py": ""}, "request: job.json.entrypoint: "),
        ({}, {"other.py": ""}, "request: files.json: the entrypoint 'script.py' is not among the files"),
        ({}, {"script.py": "", "data": ""}, "request: files.json: 'data' is the name of the public data"),
    ],
    ids=["type", "path", "entrypoint", "data"],
)
def test_a_bad_request_is_one_clear_message_and_exit_code_64(
    make_pod: MakePod, changes: dict[str, object], files: dict[str, str], reason: str
) -> None:
    pod = make_pod(changes=changes)
    pod.ask(files)
    agent = pod.start_agent()
    assert agent.wait() == 64
    said = read_runner_result(pod.message.decode())
    assert isinstance(said, Unfinished)
    assert said.failure.startswith(reason)
    assert agent.said == f"{said.failure}\n"


def test_a_fault_of_our_own_is_exit_code_70_with_the_reason(pod: LocalPod) -> None:
    (pod.root / "work/data").mkdir()
    ended = pod.run(SUBMIT)
    assert ended.agent_exit == 70
    assert "File exists" in ended.unfinished.failure
    assert ended.verdict.outcome is Outcome.INFRASTRUCTURE_FAILED
    assert ended.verdict.reason.startswith("RunnerDied: exit code 70: runner: FileExistsError")
