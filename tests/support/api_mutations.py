"""One good object of each kind, and every way to spoil it in one place: for the models and for an API server."""

from __future__ import annotations

import copy
from typing import Any

API = "mlwright.dev/v1alpha1"
RUN: dict[str, Any] = {
    "apiVersion": API,
    "kind": "TrainingRun",
    "metadata": {"name": "run"},
    "spec": {
        "tasks": [{"name": "churn"}, {"name": "ames", "weight": 2}],
        "model": {"source": {"path": "model"}},
        "algorithm": {
            "batchSize": 64,
            "minibatchSize": 16,
            "learningRate": 1e-4,
            "kl": {"coefficient": 0.01},
        },
        "sampling": {"maxTokens": 512},
        "collection": {"mode": "Synchronous"},
        "evaluation": {"samples": 8},
    },
}
SCRATCH: dict[str, Any] = {
    **RUN,
    "spec": {
        **RUN["spec"],
        "model": {"source": {"scratch": {"config": {"model_type": "qwen2"}}}},
        "fineTuning": {"examples": {"generator": "sklearn-tabular"}},
    },
}
TASK: dict[str, Any] = {
    "apiVersion": API,
    "kind": "MLTask",
    "metadata": {"name": "churn"},
    "spec": {
        "title": "Who leaves?",
        "description": "Predict who leaves.",
        "metric": {"name": "roc_auc"},
        "submission": {"targetColumns": ["churn"], "kind": "Probabilities"},
        "data": {
            "public": {"claim": {"name": "data", "path": "churn/public"}},
            "private": {"claim": {"name": "data", "path": "churn/private"}},
            "sealed": {"claim": {"name": "sealed"}},
        },
        "reference": {"baseline": 0.5, "best": 0.92},
    },
}
LOSS: dict[str, Any] = {
    **TASK,
    "spec": {**TASK["spec"], "metric": {"name": "log_loss"}, "reference": {"baseline": 0.7, "best": 0.2}},
}
ROLLOUT: dict[str, Any] = {
    "apiVersion": API,
    "kind": "Rollout",
    "metadata": {"name": "run-0-1"},
    "spec": {
        "runRef": {"name": "run", "uid": "0b4b6c3e"},
        "taskRef": {"name": "churn", "digest": "sha256:" + "0" * 64},
        "files": [{"path": "script.py", "content": "print(1)\n"}],
    },
}
ABSENT = object()


def changed(good: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy of `good` with one field set, or left out."""
    copied = copy.deepcopy(good)
    parts: list[Any] = [int(part) if part.isdigit() else part for part in path.split("/")]
    target: Any = copied
    for part in parts[:-1]:
        target = target[part] if isinstance(target, list) else target.setdefault(part, {})
    last = parts[-1]
    if value is ABSENT:
        del target[last]
    else:
        target[last] = value
    return copied


RUN_MUTATIONS: list[tuple[str, object, str]] = [
    ("metadata/name", ABSENT, "metadata.name: is required"),
    ("metadata/name", "Run_1", "metadata.name: must be lower-case letters, digits, '-' and '.'"),
    ("metadata/name", "a" * 254, "metadata.name: must have at most 253 characters, not 254"),
    ("metadata/lables", {}, "metadata.lables: unknown field 'lables': did you mean labels?"),
    ("metadata/labels", {"a": 1}, "metadata.labels.a: must be text, not 1"),
    ("metadata/labels", {"a": "x" * 64}, "metadata.labels.a: must have at most 63 characters, not 64"),
    ("spec", ABSENT, "spec: is required"),
    ("spec", [], "spec: must be a mapping, not a list"),
    ("spec/tasks", ABSENT, "spec.tasks: is required"),
    ("spec/tasks", [], "spec.tasks: must not be empty"),
    ("spec/tasks", "churn", "spec.tasks: must be a list, not the text 'churn'"),
    ("spec/tasks/1/name", "churn", "spec.tasks: names must be distinct, but churn comes twice"),
    ("spec/tasks/0/wieght", 1, "spec.tasks[0].wieght: unknown field 'wieght': did you mean weight?"),
    ("spec/tasks/0/weight", 0, "spec.tasks[0].weight: must be greater than 0, not 0"),
    ("spec/tasks/0/weight", "1", "spec.tasks[0].weight: must be a number, not the text '1'"),
    ("spec/suspend", "yes", "spec.suspend: must be true or false, not the text 'yes'"),
    ("spec/suspend", 1, "spec.suspend: must be true or false, not 1"),
    ("spec/seed", -1, "spec.seed: must be at least 0, not -1"),
    ("spec/seed", 2**31, "spec.seed: must be at most 2147483647, not 2147483648"),
    ("spec/seed", 1.5, "spec.seed: must be a whole number, not 1.5"),
    ("spec/seed", True, "spec.seed: must be a whole number, not true"),
    (
        "spec/preset",
        "rlformle",
        "spec.preset: must be RLforMLE, not the text 'rlformle' (did you mean RLforMLE?)",
    ),
    ("spec/drainSeconds", -1, "spec.drainSeconds: must be at least 0, not -1"),
    ("spec/sandbox", "A B", "spec.sandbox: must be lower-case letters, digits and '-'"),
    ("spec/model", ABSENT, "spec.model: is required"),
    (
        "spec/model/source",
        {},
        "spec.model.source: exactly one of hub, claim, image, path, scratch is required, and",
    ),
    (
        "spec/model/source/hub",
        "a/b",
        "spec.model.source: exactly one of hub, claim, image, path, scratch is required, not hub and path",
    ),
    ("spec/model/source", {"hub": "a b"}, "spec.model.source.hub: must be a hub name such as owner/name"),
    (
        "spec/model/source",
        {"claim": {"name": "c", "path": "../x"}},
        "spec.model.source.claim.path: must be relative",
    ),
    *(
        (
            "spec/model/source",
            {"claim": {"name": "c", "path": path}},
            "spec.model.source.claim.path: must be relative to the claim, without '..', '.' and empty parts",
        )
        for path in ("/x", "x/../y", "x/", "x//y", ".", "./x")
    ),
    (
        "spec/model/dtype",
        "fp32",
        "spec.model.dtype: must be one of float32, bfloat16, float16, not the text 'fp32'",
    ),
    (
        "spec/model/maxModelLength",
        1024,
        "spec.model.maxModelLength: must be at least prompts.maxPromptTokens + "
        "sampling.maxTokens = 1536, not 1024",
    ),
    (
        "spec/model/lora",
        {"targetModules": "all"},
        "spec.model.lora.targetModules: must be a list, not the text 'all'",
    ),
    (
        "spec/model/lora",
        {"targetModules": ["all-linear", "q_proj"]},
        "spec.model.lora.targetModules: must be all-linear alone, or names of modules",
    ),
    (
        "spec/model/lora",
        {"targetModules": ["q_proj", "q_proj"]},
        "spec.model.lora.targetModules: must be distinct, but 'q_proj' comes twice",
    ),
    ("spec/model/lora", {"rank": 0}, "spec.model.lora.rank: must be at least 1, not 0"),
    ("spec/algorithm/kind", "GRPO", "spec.algorithm.kind: must be PPO, not the text 'GRPO'"),
    ("spec/algorithm/updates", 0, "spec.algorithm.updates: must be at least 1, not 0"),
    (
        "spec/algorithm/minibatchSize",
        65,
        "spec.algorithm.minibatchSize: must be at most batchSize (64), not 65",
    ),
    ("spec/algorithm/learningRate", 0, "spec.algorithm.learningRate: must be greater than 0, not 0"),
    ("spec/algorithm/learningRate", 2, "spec.algorithm.learningRate: must be at most 1, not 2"),
    (
        "spec/algorithm/learningRate",
        "1e-6",
        "spec.algorithm.learningRate: must be a number, not the text '1e-6'",
    ),
    (
        "spec/algorithm/learningrate",
        1,
        "spec.algorithm.learningrate: unknown field 'learningrate': did you mean learningRate?",
    ),
    ("spec/algorithm/lambda", 1.1, "spec.algorithm.lambda: must be at most 1, not 1.1"),
    ("spec/algorithm/lambda_", 1, "spec.algorithm.lambda_: unknown field 'lambda_': did you mean lambda?"),
    (
        "spec/algorithm/clipRangeHigh",
        0.1,
        "spec.algorithm.clipRangeHigh: must be at least clipRange (0.2), not 0.1",
    ),
    (
        "spec/algorithm",
        {"minibatchSize": 129},
        "spec.algorithm.minibatchSize: must be at most batchSize (128), not 129",
    ),
    ("spec/algorithm/dualClip", 1, "spec.algorithm.dualClip: must be greater than 1, not 1"),
    (
        "spec/algorithm/scheduler",
        {"warmupUpdates": 100},
        "spec.algorithm.scheduler.warmupUpdates: must be less than updates (100), not 100",
    ),
    (
        "spec/algorithm/criticWarmupUpdates",
        100,
        "spec.algorithm.criticWarmupUpdates: must be less than updates",
    ),
    (
        "spec/algorithm/kl",
        {"estimator": "k3"},
        "spec.algorithm.kl.estimator: must be one of K1, K2, K3, not the text 'k3' (did you mean K3?)",
    ),
    (
        "spec/algorithm/kl",
        {"coefficient": 0, "target": 0.1},
        "spec.algorithm.kl.coefficient: must be greater than 0",
    ),
    (
        "spec/algorithm/durationWeighting",
        {"mode": "DurationAware"},
        "spec.algorithm.durationWeighting.mode: DurationAware needs collection.mode Window, not Synchronous",
    ),
    (
        "spec/algorithm/durationWeighting",
        {"maxWeight": 0.5},
        "spec.algorithm.durationWeighting.maxWeight: must be at",
    ),
    ("spec/prompts/improveFraction", 1.5, "spec.prompts.improveFraction: must be at most 1, not 1.5"),
    ("spec/prompts/templates", {"draft": ""}, "spec.prompts.templates.draft: must not be empty"),
    ("spec/sampling/topP", 0.9, "spec.sampling.topP: is refused: it changes the support"),
    ("spec/sampling/topK", 40, "spec.sampling.topK: is refused"),
    ("spec/sampling/minP", 0.1, "spec.sampling.minP: is refused"),
    ("spec/sampling/temperature", 0, "spec.sampling.temperature: must be greater than 0, not 0"),
    ("spec/collection/mode", "Async", "spec.collection.mode: must be one of Continuous, Synchronous, Window"),
    ("spec/collection/mode", "Window", "spec.collection.windowSeconds: is required with mode Window"),
    (
        "spec/collection/windowSeconds",
        10,
        "spec.collection.windowSeconds: is only for mode Window, not Synchronous",
    ),
    (
        "spec/collection",
        {"mode": "Window", "windowSeconds": 9},
        "spec.algorithm.batchSize: is refused with collection.mode Window",
    ),
    (
        "spec/collection/maxInFlight",
        65,
        "spec.collection.maxInFlight: must be at most algorithm.batchSize (64)",
    ),
    (
        "spec/collection",
        {"maxInFlight": 129},
        "spec.collection.maxInFlight: must be at most algorithm.batchSize x "
        "(targetStaleness + 1) = 128, not 129",
    ),
    ("spec/environment/kind", "Workspace", "spec.environment.kind: must be Script, not the text 'Workspace'"),
    ("spec/reward/invalid", -0.4, "spec.reward: invalid + 7 x milestone must be below -0.1"),
    ("spec/reward/milestone", 0.06, "spec.reward: invalid + 7 x milestone must be below -0.1"),
    ("spec/reward/milestone", -0.1, "spec.reward.milestone: must be at least 0, not -0.1"),
    ("spec/fineTuning", {}, "spec.fineTuning.examples: is required"),
    (
        "spec/fineTuning",
        {"examples": {}},
        "spec.fineTuning.examples: exactly one of claim, image, path, generator",
    ),
    (
        "spec/collector",
        {"replicas": 2},
        "spec.collector.replicas: must be 1: the ledger has one writer, not 2",
    ),
    (
        "spec/learner",
        {"resources": {"limit": {}}},
        "spec.learner.resources.limit: must be one of requests, limits",
    ),
    (
        "spec/learner",
        {"resources": {"limits": {"cpu": "two"}}},
        "spec.learner.resources.limits.cpu: must be a quantity such as 500m, 2Gi or 1.5, not 'two'",
    ),
    (
        "spec/inference/kind",
        "vllm",
        "spec.inference.kind: must be one of VLLM, Transformers, not the text 'vllm' (did",
    ),
    (
        "spec/inference",
        {"tolerations": [{"operater": "Exists"}]},
        "spec.inference.tolerations[0].operater: unknown field 'operater': did you mean operator?",
    ),
    ("spec/storage", {"ledger": {}}, "spec.storage.ledger: exactly one of claim, size is required"),
    (
        "spec/storage",
        {"weights": {"claim": {"name": "w"}, "storageClassName": "fast"}},
        "spec.storage.weights.storageClassName: is only for a claim that is to be made",
    ),
    ("spec/storage/whenDeleted", "Keep", "spec.storage.whenDeleted: must be one of Retain, Delete"),
    ("spec/checkpoint/keep", 0, "spec.checkpoint.keep: must be at least 1, not 0"),
    (
        "spec/evaluation",
        {"everyUpdates": 4},
        "spec.evaluation.samples: must be at least 1 where everyUpdates is given",
    ),
    ("status", {"phase": "Running"}, "status.phase: unknown field 'phase'"),
    ("spce", {}, "spce: unknown field 'spce': did you mean spec?"),
]
SCRATCH_MUTATIONS: list[tuple[str, object, str]] = [
    ("spec/fineTuning", ABSENT, "spec.fineTuning: is required with model.source.scratch"),
    ("spec/model/tokenizer", "gpt2", "spec.model.tokenizer: is refused with source.scratch"),
    ("spec/model/lora", {"rank": 8}, "spec.model.lora: is refused with source.scratch"),
    ("spec/model/source/scratch/config", {}, "spec.model.source.scratch.config: must not be empty"),
    (
        "spec/model/source/scratch/config",
        {"hidden_size": 8},
        "spec.model.source.scratch.config.model_type: is requ",
    ),
    (
        "spec/model/source/scratch/vocabularySize",
        10,
        "spec.model.source.scratch.vocabularySize: must be at least 300",
    ),
]
TASK_MUTATIONS: list[tuple[str, object, str]] = [
    ("spec/title", "", "spec.title: must not be empty"),
    ("spec/description", ABSENT, "spec.description: is required"),
    ("spec/metric", "roc_auc", "spec.metric: must be a mapping, not the text 'roc_auc'"),
    ("spec/metric/name", "auc", "spec.metric.name: unknown metric 'auc'"),
    ("spec/metric/name", "ROC", "spec.metric.name: must be lower-case letters, digits and '_'"),
    ("spec/metric/direction", "Minimize", "spec.metric.direction: must be Maximize for roc_auc, or left out"),
    (
        "spec/metric/direction",
        "maximize",
        "spec.metric.direction: must be one of Maximize, Minimize, not the text "
        "'maximize' (did you mean Maximize?)",
    ),
    ("spec/metric/averaging", "Macro", "spec.metric.averaging: means nothing to roc_auc"),
    ("spec/metric/k", 5, "spec.metric.k: means nothing to roc_auc"),
    (
        "spec/submission/kind",
        "Labels",
        "spec.submission.kind: must be Probabilities or Values for roc_auc, not Labels",
    ),
    ("spec/submission/targetColumns", [], "spec.submission.targetColumns: must not be empty"),
    (
        "spec/submission/targetColumns",
        ["a", "a"],
        "spec.submission.targetColumns: must be distinct, but 'a' comes",
    ),
    (
        "spec/submission/targetColumns",
        ["id"],
        "spec.submission.targetColumns: must not contain the idColumn 'id'",
    ),
    (
        "spec/submission/targetColumns",
        ["a", "b"],
        "spec.submission.targetColumns: must be one column for roc_auc",
    ),
    (
        "spec/submission/fileName",
        "../x.csv",
        "spec.submission.fileName: must be a file name that ends in .csv",
    ),
    (
        "spec/submission/fileName",
        "x.parquet",
        "spec.submission.fileName: must be a file name that ends in .csv",
    ),
    ("spec/splits", {"strategy": "Group"}, "spec.splits.column: is required with strategy Group"),
    ("spec/splits", {"column": "when"}, "spec.splits.column: is only for the strategies Group and Time"),
    ("spec/data/public", {}, "spec.data.public: exactly one of image, claim, configMap is required"),
    ("spec/data/private/claim/path", "churn/public/answers", "spec.data.private: must be apart from public"),
    ("spec/data/public/claim/path", "", "spec.data.private: must be apart from public"),
    (
        "spec/data/sealed",
        {"claim": {"name": "data", "path": "churn/private"}},
        "spec.data.sealed: must be apart from private",
    ),
    ("spec/metric/name", "accuracy", "spec.submission.kind: must be Labels for accuracy, not Probabilities"),
    ("spec/metric/name", "r2", "spec.submission.kind: must be Values for r2, not Probabilities"),
    (
        "spec/reference",
        {"baseline": 0.5, "bronze": 0.9, "silver": 0.8},
        "spec.reference.silver: 0.8 must not be worse than bronze 0.9 (Maximize roc_auc)",
    ),
    ("spec/data/private/claim/path", "../x", "spec.data.private.claim.path: must be relative to the claim"),
    ("spec/limits/timeoutSeconds", 0, "spec.limits.timeoutSeconds: must be greater than 0, not 0"),
    ("spec/limits/cpu", 0, "spec.limits.cpu: must be greater than 0, not '0'"),
    (
        "spec/limits/memory",
        "2GB",
        "spec.limits.memory: must be a quantity such as 500m, 2Gi or 1.5, not '2GB'",
    ),
    ("spec/limits/memory", True, "spec.limits.memory: must be a quantity"),
    (
        "spec/limits/cpu",
        1.5,
        'spec.limits.cpu: must be a quantity, in quotes where it is no whole number: "1.5"',
    ),
    ("spec/limits/cpu", "0m", "spec.limits.cpu: must be greater than 0, not '0m'"),
    ("spec/limits/gpus", -1, "spec.limits.gpus: must be at least 0, not -1"),
    ("spec/reference/baseline", ABSENT, "spec.reference.baseline: is required"),
    ("spec/reference/best", 0.4, "spec.reference.best: 0.4 must not be worse than baseline 0.5"),
    ("spec/reference/best", 1.2, "spec.reference.best: must be in [0, 1] for roc_auc, not 1.2"),
    (
        "spec/reference",
        {"baseline": 0.5, "gold": 0.8, "silver": 0.9},
        "spec.reference.gold: 0.8 must not be worse",
    ),
    ("status", {"phase": "Ready"}, "status.phase: unknown field 'phase'"),
    ("status", {"digest": "sha256:0"}, "status.digest: must be sha256: and 64 hexadecimal digits"),
]
LOSS_MUTATIONS: list[tuple[str, object, str]] = [
    (
        "spec/submission/kind",
        "Labels",
        "spec.submission.kind: must be Probabilities for log_loss, not Labels",
    ),
    (
        "spec/metric/direction",
        "Maximize",
        "spec.metric.direction: must be Minimize for log_loss, or left out",
    ),
    (
        "spec/reference/best",
        0.8,
        "spec.reference.best: 0.8 must not be worse than baseline 0.7 (Minimize log_loss)",
    ),
    ("spec/reference/best", -0.1, "spec.reference.best: must be in [0, inf] for log_loss, not -0.1"),
]
ROLLOUT_MUTATIONS: list[tuple[str, object, str]] = [
    ("spec/taskRef", ABSENT, "spec.taskRef: is required"),
    ("spec/taskRef/digest", "sha256:xyz", "spec.taskRef.digest: must be sha256: and 64 hexadecimal digits"),
    ("spec/policyVersion", -1, "spec.policyVersion: must be at least 0, not -1"),
    ("spec/files", [], "spec.files: must not be empty"),
    ("spec/files/0/path", "../script.py", "spec.files[0].path: must be a file name: letters"),
    ("spec/files/0/path", "a/b.py", "spec.files[0].path: must be a file name: letters"),
    ("spec/files/0/content", "x" * 131_073, "spec.files[0].content: must have at most 131072 characters"),
    (
        "spec/files/0/content",
        "\u00e9" * 70_000,
        "spec.files: must be at most 131072 bytes together, not 140000",
    ),
    (
        "spec/files",
        [{"path": "script.py", "content": ""}] * 2,
        "spec.files: paths must be distinct, but 'script.py'",
    ),
    ("spec/entrypoint", "main.py", "spec.entrypoint: must be the path of one of files, not 'main.py'"),
    ("spec/splits", ["Reward", "Final"], "spec.splits: must be of Reward, Selection: Final is graded once"),
    ("spec/splits", ["Reward", "Reward"], "spec.splits: must be distinct, but Reward comes twice"),
    ("spec/splits", [], "spec.splits: must not be empty"),
    ("spec/limits", {"cpu": 0}, "spec.limits.cpu: must be greater than 0, not '0'"),
    ("spec/limits", {"memory": "0Gi"}, "spec.limits.memory: must be greater than 0, not '0Gi'"),
    ("spec/seed", 2**53 + 1, "spec.seed: must be at most 9.00719925474099e+15, not 9007199254740993"),
    ("status", {"outcome": "Success"}, "status.outcome: must be one of Scored, Trivial"),
    ("status", {"milestones": ["imports"] * 8}, "status.milestones: must have at most 7 entries, not 8"),
    ("status", {"seconds": {"execution": -1}}, "status.seconds.execution: must be at least 0, not -1"),
]
MUTATIONS = [
    *((RUN, *mutation) for mutation in RUN_MUTATIONS),
    *((SCRATCH, *mutation) for mutation in SCRATCH_MUTATIONS),
    *((TASK, *mutation) for mutation in TASK_MUTATIONS),
    *((LOSS, *mutation) for mutation in LOSS_MUTATIONS),
    *((ROLLOUT, *mutation) for mutation in ROLLOUT_MUTATIONS),
]

HARMLESS: list[tuple[dict[str, Any], str, object]] = [
    (RUN, "spec/algorithm", {}),
    (RUN, "spec/algorithm/minibatchSize", 64),
    (RUN, "spec/algorithm", {"minibatchSize": 128}),
    (RUN, "spec/algorithm/clipRangeHigh", 0.2),
    (RUN, "spec/algorithm/learningRate", 1),
    (RUN, "spec/algorithm/scheduler", {"kind": "Cosine", "warmupUpdates": 99}),
    (RUN, "spec/algorithm/criticWarmupUpdates", 99),
    (RUN, "spec/algorithm/kl", {"target": 0.1}),
    (RUN, "spec/algorithm/kl", {"coefficient": 0}),
    (RUN, "spec/algorithm/durationWeighting", {"mode": "DurationAware", "force": True}),
    (RUN, "spec/model/maxModelLength", 1536),
    (RUN, "spec/model/lora", {}),
    (RUN, "spec/model/lora", {"targetModules": ["q_proj", "v_proj"]}),
    (RUN, "spec/model/source", {"hub": "Qwen/Qwen2.5-3B@main"}),
    (RUN, "spec/model/source", {"claim": {"name": "c", "path": "a/b..c/.d"}}),
    (RUN, "spec/collection", {"maxInFlight": 128}),
    (RUN, "spec/collection", {"mode": "Synchronous", "maxInFlight": 64}),
    (RUN, "spec/preset", "RLforMLE"),
    (RUN, "spec/reward", {"invalid": -0.46}),
    (RUN, "spec/reward", {"score": "Raw", "invalid": 5}),
    (RUN, "spec/fineTuning", {"examples": {"image": "examples:1"}}),
    (RUN, "spec/evaluation", {"everyUpdates": 4, "samples": 1}),
    (RUN, "spec/storage", {"ledger": {"size": "1Gi", "storageClassName": "fast"}}),
    (RUN, "spec/storage", {"weights": {"claim": {"name": "w"}}, "whenDeleted": "Delete"}),
    (RUN, "spec/learner", {"resources": {"limits": {"cpu": 2, "nvidia.com/gpu": "1"}}}),
    (RUN, "spec/inference", {"kind": "VLLM", "replicas": 2, "tolerations": [{"operator": "Exists"}]}),
    (RUN, "spec/seed", 2**31 - 1),
    (RUN, "metadata/labels", {"team": "a"}),
    (SCRATCH, "spec/model/source/scratch/config/layer_types", [{"any": ["thing", 1.5, None]}]),
    (TASK, "spec/metric", {"name": "my_metric", "direction": "Maximize"}),
    (TASK, "spec/metric/direction", "Maximize"),
    (LOSS, "spec/submission/targetColumns", ["a", "b", "c"]),
    (LOSS, "spec/reference/baseline", 7),
    (TASK, "spec/submission/targetColumns", ["x" * 128]),
    (TASK, "spec/splits", {"strategy": "Time", "column": "when"}),
    (TASK, "spec/data/private", {"claim": {"name": "data", "path": "churn/public2"}}),
    (TASK, "spec/data/private", {"claim": {"name": "other", "path": "churn/public"}}),
    (TASK, "spec/data/private", {"image": "churn-private@sha256:0"}),
    (TASK, "spec/data/private", {"configMap": "data"}),
    (TASK, "spec/data/sealed", ABSENT),
    (TASK, "spec/data", ABSENT),
    (TASK, "spec/limits", {"cpu": "500m", "memory": 2**31, "workSize": "0.5Gi", "gpus": 1}),
    (TASK, "spec/reference/best", 1),
    (TASK, "spec/reference", {"baseline": 0, "bronze": 0.5, "silver": 0.5, "gold": 1}),
    (ROLLOUT, "spec/runRef", ABSENT),
    (ROLLOUT, "spec/splits", ["Selection"]),
    (ROLLOUT, "spec/files/0/content", "\u00e9" * 65_536),
    (ROLLOUT, "spec/limits", {"timeoutSeconds": 0.5, "cpu": "1"}),
    (ROLLOUT, "status", {"attempt": 0, "conditions": []}),
    (ROLLOUT, "status", {"attempt": 1, "outcome": "Scored", "scores": {"Reward": 1, "Selection": 0.5}}),
]
"""Changes that are as good as what they change: at the ends of bounds, and beside what is refused."""
